import { afterAll, beforeAll, expect, it } from 'vitest';
import type { AssignmentEvent } from '../../api/agent-protocol.ts';
import { startTestServer, testRegistration } from '../testing.ts';

let server: Awaited<ReturnType<typeof startTestServer>>;
beforeAll(async () => {
  server = await startTestServer();
  await server.client.create('image', { metadata: { name: 'tiny' }, spec: { source: 'file:///image' } });
});
afterAll(() => server.close());

it('a volume is told to its host, made by reports, attached while the instance runs, and gone when the host says so', async () => {
  const { client } = server;
  const agent = server.agentClient('h1');
  const { epoch } = await agent.register(
    testRegistration({ capacity: { VCPU: 4, MEMORY_MB: 8192, DISK_GB: 50 }, reserved: {} }),
  );
  const stop = new AbortController();
  const events = agent.assignments(epoch, stop.signal)[Symbol.asyncIterator]();
  const until = async <Found>(find: (event: AssignmentEvent) => Found | undefined): Promise<Found> => {
    for (;;) {
      const { value, done } = await events.next();
      if (done) return expect.unreachable('the stream ended');
      const found = find(value);
      if (found !== undefined) return found;
    }
  };
  const made = await client.create('volume', { metadata: { name: 'data' }, spec: { sizeGiB: 5, host: 'h1' } });
  const volumeId = made.metadata.id;
  // It is in the first event, or comes after it.
  const told = await until((event) =>
    event.type === 'sync' ? event.volumes?.[0] : event.type === 'put-volume' ? event.volume : undefined,
  );
  expect(told).toMatchObject({ volumeId, want: 'present', sizeGiB: 5, made: false });

  const seen = { state: 'ready' as const, sizeGiB: 5, snapshots: [] };
  const report = (sequence: number, volume: typeof seen | { state: 'absent' }, observedGeneration = 1) =>
    agent.report({ epoch, reports: [], volumes: [{ volumeId, sequence, observedGeneration, volume }] });
  expect(await report(1, seen)).toEqual({ results: [], volumes: ['accepted'] });
  expect(await report(1, seen)).toEqual({ results: [], volumes: ['stale'] });
  expect(await client.get('volume', 'data')).toMatchObject({ status: { phase: 'Ready', host: 'h1', made: true } });
  expect(await until((event) => (event.type === 'put-volume' ? event.volume : undefined))).toMatchObject({
    made: true,
  });

  const instance = await client.create('instance', {
    metadata: { name: 'web' },
    spec: { image: 'tiny', cpus: 1, memoryMiB: 512 },
  });
  await client.replace('instance', 'web', {
    metadata: { labels: {} },
    spec: { ...instance.spec, volumes: [{ name: 'data' }] },
  });
  const assigned = await until((event) =>
    event.type === 'put' && event.assignment.volumes ? event.assignment.volumes : undefined,
  );
  expect(assigned).toEqual([{ volumeId, name: 'data', readOnly: false }]);
  await expect(client.delete('volume', 'data')).rejects.toMatchObject({ code: 'Conflict' });
  const usage = await client.get('volume', 'data');
  expect(usage.status.attachedTo).toEqual({ instance: 'web', id: instance.metadata.id });

  await client.replace('instance', 'web', { metadata: { labels: {} }, spec: instance.spec });
  expect(await until((event) => (event.type === 'put' ? event.assignment : undefined))).not.toHaveProperty('volumes');
  expect((await client.get('volume', 'data')).status.attachedTo).toBeUndefined();
  await client.delete('volume', 'data');
  expect(await until((event) => (event.type === 'put-volume' ? event.volume.want : undefined))).toBe('absent');
  expect(await report(2, { state: 'absent' })).toEqual({ results: [], volumes: ['accepted'] });
  expect(await until((event) => (event.type === 'drop-volume' ? event.volumeId : undefined))).toBe(volumeId);
  await expect.poll(() => client.get('volume', 'data').catch((error) => error.code)).toBe('NotFound');
  stop.abort();
});
