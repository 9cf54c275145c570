import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestServer, testRegistration } from '../testing.ts';

let server: Awaited<ReturnType<typeof startTestServer>>;

beforeAll(async () => {
  server = await startTestServer();
  const { client } = server;
  await client.create('image', { metadata: { name: 'tiny' }, spec: { source: 'file:///tiny' } });
  await client.create('size', { metadata: { name: 'small' }, spec: { cpus: 2, memoryMiB: 1024 } });
  for (const name of ['h1', 'h2'])
    await server
      .agentClient(name)
      .register(testRegistration({ machineId: name, capacity: { VCPU: 4, MEMORY_MB: 8192 } }));
  await client.create('task', { metadata: { name: 'hold' }, spec: { cpus: 3, memoryMiB: 1024, ttlMs: 60_000 } });
  for await (const change of client.watch('task', { revision: 0 }))
    if (change.type === 'put' && change.resource.status.phase === 'Placed') break;
});

afterAll(() => server.close());

describe('capacity', () => {
  it('is told of every size', async () => {
    const { hosts, sizes, losses } = await server.client.capacity();
    expect(hosts).toBe(2);
    expect(sizes).toMatchObject([{ size: 'small', more: 2, stranded: [{ reason: 'InsufficientCpu', hosts: 2 }] }]);
    expect(losses).toEqual([]);
  });

  it('is told of what is asked for, in a query or in a body', async () => {
    expect(await server.client.json('/v1/capacity?cpus=1&memoryMiB=512')).toMatchObject({ sizes: [{ more: 5 }] });
    expect(await server.client.capacity({ spec: { cpus: 4, memoryMiB: 512 } })).toMatchObject({ sizes: [{ more: 1 }] });
  });

  it('tells of losses when asked', async () => {
    const { losses } = await server.client.capacity({ losses: 2 });
    expect(losses.map(({ losses: count, of, survived }) => [count, of, survived])).toEqual([
      [1, 0, 0],
      [2, 0, 0],
    ]);
  });

  it('is as of a while ago for those to whom that will do, and of now for others', async () => {
    const more = async (question?: object) => (await server.client.capacity(question)).sizes[0]?.more;
    expect(await more({ maxAgeMs: 60_000 })).toBe(2);
    await server.client.create('task', { metadata: { name: 'more' }, spec: { cpus: 2, memoryMiB: 64, ttlMs: 60_000 } });
    await expect.poll(async () => more()).toBe(1);
    await server.client.delete('task', 'more');
    expect(await more({ maxAgeMs: 60_000 })).toBe(1);
    await expect.poll(async () => more()).toBe(2);
  });

  it('refuses what it does not know', async () => {
    await expect(server.client.json('/v1/capacity?loss=1')).rejects.toMatchObject({ field: 'loss' });
    await expect(server.client.json('/v1/capacity?losses=3')).rejects.toMatchObject({ field: 'losses' });
  });
});

describe('usage', () => {
  it('is what is held of each host, by page', async () => {
    const first = await server.client.usage({ limit: 1 });
    expect(first).toMatchObject({ items: [{ host: 'h1', consumers: 1, classes: { VCPU: { capacity: 4, used: 3 } } }] });
    const second = await server.client.usage({ limit: 1, continue: first.continue ?? '' });
    expect(second).toEqual({
      items: [
        {
          host: 'h2',
          consumers: 0,
          classes: { VCPU: { capacity: 4, used: 0, most: 4 }, MEMORY_MB: { capacity: 8192, used: 0, most: 8192 } },
        },
      ],
    });
  });

  it('of a project is what its instances ask for, and nothing of one that has none', async () => {
    const spec = { image: 'tiny', cpus: 2, memoryMiB: 64, powerState: 'stopped' } as const;
    await server.client.create('instance', { metadata: { name: 'a', project: 'theirs' }, spec });
    const { charged } = await server.client.projectUsage('theirs');
    expect(charged).toMatchObject({ VCPU: 2, MEMORY_MB: 64, INSTANCES: 1 });
    expect(await server.client.projectUsage('nobody')).toEqual({ project: 'nobody', charged: {} });
  });

  it('of one host names providers and holders', async () => {
    expect(await server.client.providers('h1')).toMatchObject({
      providers: [{ inventories: { VCPU: { total: 4, capacity: 4, used: 3 } } }],
      allocations: [{ kind: 'task', project: 'default', name: 'hold' }],
    });
    await expect(server.client.providers('nope')).rejects.toMatchObject({ code: 'NotFound' });
  });
});
