import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestServer, testRegistration } from '../testing.ts';

let server: Awaited<ReturnType<typeof startTestServer>>;

beforeAll(async () => {
  server = await startTestServer();
  await server.client.create('image', { metadata: { name: 'tiny' }, spec: { source: 'file:///tiny' } });
  for (const [name, cpus] of [
    ['h1', 4],
    ['h2', 8],
  ] as const)
    await server
      .agentClient(name)
      .register(testRegistration({ machineId: name, capacity: { VCPU: cpus, MEMORY_MB: 8192, DISK_GB: 100 } }));
});

afterAll(() => server.close());

const spec = { image: 'tiny', cpus: 2, memoryMiB: 512 };

describe('a dry run', () => {
  it('says where an instance would go, and makes none', async () => {
    const { metadata, status, explanation } = await server.client.plan({ metadata: { name: 'web' }, spec });
    expect(metadata.name).toBe('web');
    expect(status.phase).toBe('Pending');
    expect(explanation).toMatchObject({ summary: 'fits on h1', counts: { hosts: 2, fit: 2, refused: 0 } });
    expect(explanation.hosts[0]).toMatchObject({ host: 'h1', fits: true });
    expect((await server.client.list('instance')).items).toEqual([]);
  });

  it('says why it would wait, and what would change that', async () => {
    const { explanation } = await server.client.plan({ spec: { ...spec, cpus: 10 } });
    expect(explanation.summary).toBe('0 of 2 hosts: 2 InsufficientCpu');
    expect(explanation.nearest?.[0]).toMatchObject({ change: 'AskLess', hosts: ['h2'], ask: { VCPU: 8 } });
  });

  it('says that it would wait for a limit though there is room', async () => {
    const limited = await startTestServer({ policy: { maxConcurrency: 0 } });
    try {
      await limited.client.create('image', { metadata: { name: 'tiny' }, spec: { source: 'file:///tiny' } });
      await limited.agentClient('h1').register(testRegistration({ capacity: { VCPU: 4, MEMORY_MB: 8192 } }));
      const { explanation } = await limited.client.plan({ spec });
      expect(explanation.summary).toBe('ConcurrencyLimit: 0 of 0 instances; there is room on h1');
    } finally {
      await limited.close();
    }
  });

  it('refuses what a create would refuse', async () => {
    await expect(server.client.plan({ spec: { ...spec, image: 'nope' } })).rejects.toMatchObject({
      code: 'InvalidRequest',
      field: 'spec.image',
    });
  });

  it('works for every kind', async () => {
    const size = await server.client.json('/v1/sizes', {
      method: 'POST',
      query: { dryRun: true },
      body: { metadata: { name: 's' }, spec: { cpus: 1, memoryMiB: 512 } },
    });
    expect(size).toMatchObject({ kind: 'size', metadata: { name: 's' } });
    expect((await server.client.list('size')).items).toEqual([]);
  });
});

describe('candidates', () => {
  it('are the hosts that would take it, the best first, with who gives what', async () => {
    const found = await server.client.candidates({ spec });
    expect(found.candidates.map(({ host }) => host)).toEqual(['h1', 'h2']);
    expect(Object.values(found.candidates[0]?.held ?? {})).toEqual([{ VCPU: 2, MEMORY_MB: 512 }]);
  });

  it('can be asked for as OpenStack Placement is, without the defaults of an instance', async () => {
    const found = await server.client.json('/v1/candidates?resources=VCPU:6&limit=1');
    expect(found).toMatchObject({ amounts: { VCPU: 6 }, counts: { hosts: 2, fit: 1 }, candidates: [{ host: 'h2' }] });
    expect(found).toMatchObject({ reasons: [{ reason: 'InsufficientCpu', hosts: 1 }] });
  });

  it.each([
    ['required=!CUSTOM_A&required=!CUSTOM_B', 2],
    ['required=!CUSTOM_A&required=CUSTOM_B', 0],
    ['required=CUSTOM_A&required=!CUSTOM_B', 0],
  ])('each `required` of several counts: %s', async (query, fit) => {
    const found = await server.client.json(`/v1/candidates?resources=VCPU:1&${query}`);
    expect(found).toMatchObject({ counts: { hosts: 2, fit } });
  });

  it.each([
    ['cpu=2', 'cpu'],
    ['size=huge', 'spec.size'],
    ['cpus=0', 'cpus'],
    ['resources=VCPU', 'spec.placement.query'],
    ['hostLabels=x', 'hostLabels'],
    ['cpus=1&cpus=2', 'cpus'],
    ['resources=VCPU:1&resources=VCPU:2', 'spec.placement.query'],
    ['resources=VCPU:1&required=CUSTOM_A&required=!CUSTOM_A', 'spec.placement.query'],
  ])('names what is wrong with %s', async (query, field) => {
    await expect(server.client.json(`/v1/candidates?${query}`)).rejects.toMatchObject({
      code: 'InvalidRequest',
      field,
    });
  });
});

describe('what cannot be asked for', () => {
  const ports = [80, 80].map((hostPort) => ({ hostPort, guestPort: hostPort, protocol: 'tcp' as const }));
  const near = { to: { app: 'db' }, by: 'host', required: true };
  const wrong: [string, object, string][] = [
    ['an image that is not there', { image: 'nope' }, 'spec.image'],
    ['a host port twice', { ports }, 'spec.ports[1].hostPort'],
    ['a pool that nobody knows', { placement: { pool: 'nope' } }, 'spec.placement.pool'],
    ['a group that is not there', { placement: { group: 'nope' } }, 'spec.placement.group'],
    ['most on a host of nobody', { placement: { maxPerHost: 1 } }, 'spec.placement.maxPerHost'],
    ['both near and away', { placement: { affinity: [near], antiAffinity: [near] } }, 'spec.placement.antiAffinity[0]'],
  ];
  const ways: [string, object][] = [
    ['/v1/instances', {}],
    ['/v1/instances?dryRun=true', {}],
    ['/v1/tasks', { ttlMs: 60_000 }],
    ['/v1/candidates', {}],
    ['/v1/capacity', {}],
  ];

  it.each(wrong)('is refused of everyone alike: %s', async (_, asked, field) => {
    for (const [path, more] of ways) {
      const named = path.startsWith('/v1/tasks') ? { metadata: { name: 'wrong' } } : {};
      const body = { ...named, spec: { ...spec, ...asked, ...more } };
      await expect(server.client.json(path, { method: 'POST', body })).rejects.toMatchObject({
        code: 'InvalidRequest',
        field,
      });
    }
  });

  it('includes the room of a task where free room is asked for', async () => {
    const asked = { ...spec, placement: { task: 'hold' } };
    await expect(server.client.json('/v1/candidates', { method: 'POST', body: { spec: asked } })).rejects.toMatchObject(
      {
        code: 'InvalidRequest',
        field: 'spec.placement.task',
      },
    );
  });
});

describe('a task', () => {
  it('holds room, is taken over by an instance, and cannot be taken over twice', async () => {
    const { client } = server;
    await client.create('task', { metadata: { name: 'hold' }, spec: { cpus: 4, memoryMiB: 1024, ttlMs: 60_000 } });
    for await (const change of client.watch('task', { revision: 0 }))
      if (change.type === 'put' && change.resource.status.phase === 'Placed') break;
    const { status } = await client.get('task', 'hold');
    expect(status.host).toBe('h1');
    const stop = new AbortController();
    const assignments = server.agentClient('h1').assignments(1, stop.signal)[Symbol.asyncIterator]();
    expect((await assignments.next()).value).toMatchObject({ type: 'sync', assignments: [] });
    stop.abort();
    const full = await client.candidates({ spec });
    expect(full.candidates.map(({ host }) => host)).toEqual(['h2']);
    await client.create('instance', {
      metadata: { name: 'web' },
      spec: { ...spec, cpus: 4, placement: { task: 'hold' } },
    });
    for await (const change of client.watch('instance', { revision: 0 }))
      if (change.type === 'put' && change.resource.status.host === 'h1') break;
    await expect(client.get('task', 'hold')).rejects.toMatchObject({ code: 'NotFound' });
    await expect(client.create('instance', { spec: { ...spec, placement: { task: 'hold' } } })).rejects.toMatchObject({
      code: 'InvalidRequest',
      field: 'spec.placement.task',
    });
  });
});
