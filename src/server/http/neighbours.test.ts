// Rules about neighbours through the API: groups are made, kept to, and what waits for room in them goes on when there is.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestServer, testRegistration } from '../testing.ts';

let server: Awaited<ReturnType<typeof startTestServer>>;

beforeAll(async () => {
  server = await startTestServer();
  await server.client.create('image', { metadata: { name: 'tiny' }, spec: { source: 'file:///tmp/tiny.qcow2' } });
  for (const name of ['h1', 'h2'])
    await server.agentClient(name).register(testRegistration({ machineId: `machine-${name}` }));
});
afterAll(() => server.close());

/** The instance once it is placed, or says why not. */
async function settled(name: string) {
  const stop = new AbortController();
  const { revision } = await server.client.list('instance');
  const seen = await server.client.get('instance', name);
  const isSettled = (conditions: readonly { type: string; reason: string }[]): boolean =>
    conditions.some(({ type, reason }) => type === 'Scheduled' && reason !== 'Accepted');
  if (isSettled(seen.status.conditions)) return seen.status;
  for await (const change of server.client.watch('instance', { revision }, stop.signal)) {
    if (change.type !== 'put' || change.resource.metadata.name !== name) continue;
    if (!isSettled(change.resource.status.conditions)) continue;
    stop.abort();
    return change.resource.status;
  }
  return expect.unreachable();
}

it('keeps the members of a group apart, says why one waits, and places it when the group allows more', async () => {
  const { client } = server;
  const group = await client.create('group', {
    metadata: { name: 'db' },
    spec: { antiAffinity: { by: 'host', required: true } },
  });
  expect(group.spec.antiAffinity).toEqual({ by: 'host', required: true });
  const spec = { image: 'tiny', cpus: 1, memoryMiB: 16, placement: { group: 'db' } };
  for (const name of ['a', 'b', 'c']) await client.create('instance', { metadata: { name }, spec });
  const hosts = [(await settled('a')).host, (await settled('b')).host];
  expect(hosts.toSorted((x, y) => ((x ?? '') < (y ?? '') ? -1 : 1))).toEqual(['h1', 'h2']);
  const waiting = await settled('c');
  expect(waiting).toMatchObject({ phase: 'Pending', conditions: [{ message: '0 of 2 hosts: 2 AntiAffinity' }] });

  await expect(client.delete('group', 'db')).rejects.toMatchObject({ code: 'Conflict' });
  const { revision } = await client.list('instance');
  await client.replace('group', 'db', { metadata: {}, spec: { maxPerHost: 2 } });
  const stop = new AbortController();
  for await (const change of client.watch('instance', { revision }, stop.signal)) {
    if (change.type === 'put' && change.resource.metadata.name === 'c' && change.resource.status.host !== undefined)
      break;
  }
  stop.abort();
});

it('refuses a group that is not there, naming the field', async () => {
  const spec = { image: 'tiny', placement: { group: 'dbs' } };
  await expect(server.client.create('instance', { spec })).rejects.toMatchObject({
    code: 'InvalidRequest',
    field: 'spec.placement.group',
  });
});
