// Several control planes place at once on one store: nothing is held twice, nothing beyond an inventory, and what waits says why.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { overUse } from '../core/ledger/ledger.ts';
import { conditionOf } from '../core/state/conditions.ts';
import { createMemoryStore } from '../store/memory/memory-store.ts';
import { openSqliteStore } from '../store/sqlite/sqlite-store.ts';
import type { Store } from '../store/store.ts';
import { startTestServer, testRegistration } from './testing.ts';

const planes = 3;
const hosts = 6;
const cpusPerHost = 8;
const created = 40;

async function placeAtOnce(store: Store): Promise<void> {
  const servers = [];
  for (let i = 0; i < planes; i++) servers.push(await startTestServer({ store }));
  const [first] = servers;
  if (!first) throw new Error('no server');
  await first.client.create('image', { metadata: { name: 'tiny' }, spec: { source: 'file:///tmp/tiny.qcow2' } });
  for (let i = 0; i < hosts; i++)
    await first
      .agentClient(`h${i}`)
      .register(testRegistration({ capacity: { VCPU: cpusPerHost, MEMORY_MB: 65_536, DISK_GB: 100 } }));
  for (const { plane } of servers) await until(plane.decider.cache, () => plane.decider.cache.count('host') === hosts);

  await Promise.all(
    servers.flatMap(({ client }) =>
      Array.from({ length: created }, () =>
        client.create('instance', { spec: { image: 'tiny', cpus: 1, memoryMiB: 64 } }),
      ),
    ),
  );
  const { cache } = first.plane.decider;
  const decided = (): boolean =>
    [...cache.listCommitted('instance')].filter(
      ({ value }) => conditionOf(value.status.conditions, 'Scheduled')?.reason !== 'Accepted',
    ).length ===
    planes * created;
  await until(cache, decided);

  expect(overUse(cache)).toEqual([]);
  const placed = [...cache.listCommitted('instance')].filter(({ value }) => value.status.host !== undefined);
  expect(placed).toHaveLength(hosts * cpusPerHost);
  for (const { value } of placed) {
    const held = cache.allocationsOfConsumer(value.metadata.id);
    expect(held.map((allocation) => allocation.value.host)).toEqual([value.status.host]);
  }
  expect(cache.count('allocation')).toBe(placed.length);
  for (const server of servers.slice(1)) await server.drop();
  await first.close();
}

function until(cache: { onRevision(listener: () => void): () => void }, holds: () => boolean): Promise<void> {
  return new Promise((resolve) => {
    if (holds()) return resolve();
    const stop = cache.onRevision(() => {
      if (!holds()) return;
      stop();
      resolve();
    });
  });
}

describe('three control planes that place at once', () => {
  it('on the memory store', () => placeAtOnce(createMemoryStore()));

  it('on SQLite', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'berth-several-'));
    try {
      await placeAtOnce(await openSqliteStore({ path: join(folder, 'store.db') }));
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
