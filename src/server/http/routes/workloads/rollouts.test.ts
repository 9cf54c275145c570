// Changes of a workload by the hash of their plan, over HTTP.

import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Workload } from '../../../../api/resources/workload.ts';
import { startTestServer } from '../../../testing.ts';

let server: Awaited<ReturnType<typeof startTestServer>>;

beforeAll(async () => {
  server = await startTestServer();
  const { client } = server;
  for (const name of ['web', 'other'])
    await client.create('image', {
      metadata: { name },
      spec: { source: 'docker://localhost/web:1', format: 'container' },
    });
  await client.create('workload', {
    metadata: { name: 'shop' },
    spec: { replicas: 2, template: template('web', 'key-1') },
  });
});
afterAll(() => server.close());

function template(image: string, key: string): Workload['spec']['template'] {
  const containers = [{ name: 'web', env: { KEY: key } }];
  return { labels: {}, spec: { image, cpus: 1, memoryMiB: 64, containers } } as unknown as Workload['spec']['template']; // the rest has defaults
}

async function changed(change: (spec: Workload['spec']) => Workload['spec']) {
  const { metadata, spec } = await server.client.get('workload', 'shop');
  return { metadata: { project: metadata.project, labels: metadata.labels }, spec: change(spec) };
}

it('shows an update, hides values that may be secret, and applies it by its hash', async () => {
  const { client } = server;
  const body = await changed((spec) => ({ ...spec, template: template('other', 'key-2') }));
  const { rollout, status } = await client.dryRunOfChange('workload', 'shop', body);
  expect(rollout?.changes).toEqual([
    { field: 'template.spec.image', before: 'web', after: 'other' },
    { field: 'template.spec.containers[0].env.KEY', before: '(hidden)', after: '(hidden)' },
  ]);
  expect([status.revision, rollout?.revision]).toEqual([2, { before: 1, after: 2 }]);
  expect((await client.get('workload', 'shop')).status.revision).toBe(1);
  const apply = rollout?.hash ?? '';
  await expect(
    client.replace('workload', 'shop', await changed((spec) => ({ ...spec, replicas: 3 })), { apply }),
  ).rejects.toMatchObject({
    code: 'Conflict',
    field: 'apply',
    message: expect.stringContaining('the request is another'),
  });
  await client.replace('workload', 'shop', body, { apply });
  expect((await client.get('workload', 'shop')).status.revision).toBe(2);
  await expect(client.replace('workload', 'shop', body, { apply })).rejects.toMatchObject({
    code: 'Conflict',
    details: { difference: [expect.stringContaining('it has revision 2')], hash: expect.any(String) },
  });
});

it('shows an undo, and applies it by its hash', async () => {
  const { client } = server;
  const { rollout } = await client.undoWorkload('shop', {}, { dryRun: true });
  expect(rollout).toMatchObject({ verb: 'undo', revision: { before: 2, after: 3 } });
  expect((await client.get('workload', 'shop')).status.revision).toBe(2);
  await expect(client.undoWorkload('shop', { apply: 'guessed-hash' })).rejects.toMatchObject({ code: 'Conflict' });
  const undone = await client.undoWorkload('shop', { apply: rollout?.hash ?? '' });
  expect([undone.status.revision, undone.spec.template.spec.image]).toEqual([3, 'web']);
});

it('refuses a hash for a change that is no plan', async () => {
  const { client } = server;
  const { metadata, spec } = await client.get('image', 'web');
  await expect(
    client.replace('image', 'web', { metadata: { labels: metadata.labels }, spec }, { apply: 'guessed-hash' }),
  ).rejects.toMatchObject({ code: 'InvalidRequest', field: 'apply' });
});
