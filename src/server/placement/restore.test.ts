// A backup has all that clients of the Placement API wrote, and a restore brings it back.

import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { restoredRecord } from '../../core/operations/restored-record.ts';
import { verify } from '../../core/verify/verify.ts';
import { readBackup, writeBackup } from '../storage/backup.ts';
import { refill } from '../storage/refill.ts';
import { startTestServer, testRegistration } from '../testing.ts';
import { placementClient } from './testing.ts';

it('brings providers, inventories, traits, aggregates, names and claims back as they were', async () => {
  const server = await startTestServer();
  const ask = placementClient(server.url);
  await server.agentClient('h1').register(testRegistration());
  const [root, child, consumer, aggregate] = [randomUUID(), randomUUID(), randomUUID(), randomUUID()];
  const { json: listed } = await ask('GET', '/resource_providers?name=h1');
  const host = (listed as { resource_providers: [{ uuid: string }] }).resource_providers[0].uuid;
  await ask('PUT', '/resource_classes/CUSTOM_LICENSE');
  await ask('PUT', '/traits/CUSTOM_SPINNING');
  await ask('POST', '/resource_providers', { body: { name: 'storage', uuid: root } });
  await ask('POST', '/resource_providers', { body: { name: 'shelf', uuid: child, parent_provider_uuid: root } });
  const inventories = { DISK_GB: { total: 500, reserved: 20 }, CUSTOM_LICENSE: { total: 2 } };
  await ask('PUT', `/resource_providers/${child}/inventories`, {
    body: { inventories, resource_provider_generation: 0 },
  });
  const traits = { traits: ['CUSTOM_SPINNING'], resource_provider_generation: 1 };
  await ask('PUT', `/resource_providers/${child}/traits`, { body: traits });
  const aggregates = { aggregates: [aggregate], resource_provider_generation: 2 };
  await ask('PUT', `/resource_providers/${child}/aggregates`, { body: aggregates });
  const claim = {
    allocations: { [child]: { resources: { DISK_GB: 100 } }, [host]: { resources: { VCPU: 1 } } },
    ...{ project_id: 'p', user_id: 'u', consumer_generation: null, consumer_type: 'BUILD' },
  };
  expect((await ask('PUT', `/allocations/${consumer}`, { body: claim })).status).toBe(204);
  const paths = [
    ...['', '/inventories', '/traits', '/aggregates', '/usages', '/allocations'].map(
      (part) => `/resource_providers/${child}${part}`,
    ),
    ...[`/resource_providers/${root}`, `/resource_providers/${host}/usages`, `/allocations/${consumer}`],
    ...['/usages?project_id=p', '/resource_classes/CUSTOM_LICENSE', '/traits/CUSTOM_SPINNING'],
  ];
  const readAll = async () => {
    const all = [];
    for (const path of paths) {
      const { status, json } = await ask('GET', path);
      all.push({ path, status, json });
    }
    return all;
  };
  const before = await readAll();
  expect(before.map(({ status }) => status).filter((status) => status >= 400)).toEqual([]);

  const backup = await readBackup(writeBackup(server.store, { version: 'test', nowMs: 1 }));
  expect((await ask('DELETE', `/allocations/${consumer}`)).status).toBe(204);
  for (const uuid of [child, root]) expect((await ask('DELETE', `/resource_providers/${uuid}`)).status).toBe(204);
  expect((await ask('DELETE', '/traits/CUSTOM_SPINNING')).status).toBe(204);
  await refill(server.store, {
    entries: backup.entries,
    convert: (record, { newestSession }) => restoredRecord(record, { nowMs: 1_000, newestSession }),
    ...{ by: 'restore', newEpoch: 'epoch-restored', nowMs: 1_000, why: 'a restore is under way' },
    restored: { atMs: 1_000, backupRevision: backup.revision },
  });
  await expect.poll(async () => (await ask('GET', `/resource_providers/${child}`)).status).toBe(200);
  expect(await readAll()).toEqual(before);
  const claimed = { ...claim, allocations: { [child]: { resources: { DISK_GB: 381 } } } }; // 500 − 20 − 100 are free
  expect((await ask('PUT', `/allocations/${randomUUID()}`, { body: claimed })).status).toBe(409);
  expect([...verify(server.plane.decider.cache)].filter((fault) => fault !== undefined)).toEqual([]);
  await server.close();
});
