import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestServer, testRegistration } from '../testing.ts';
import { poolAggregate } from '../../core/ledger/pool-aggregate.ts';
import { overUse } from '../../core/ledger/ledger.ts';
import { verify } from '../../core/verify/verify.ts';
import { type Ask, placementClient } from './testing.ts';

let server: Awaited<ReturnType<typeof startTestServer>>;
let ask: Ask;
let host: { uuid: string; name: string; generation: number };

const consumer = '11111111-1111-4111-8111-111111111111';
const outside = '22222222-2222-4222-8222-222222222222';
const owner = { project_id: 'p', user_id: 'u', consumer_type: 'INSTANCE' };

beforeAll(async () => {
  server = await startTestServer();
  ask = placementClient(server.url);
  await server.agentClient('h1').register(testRegistration({ capacity: { VCPU: 4, MEMORY_MB: 8192, DISK_GB: 100 } }));
  const { json } = await ask('GET', '/resource_providers?name=h1');
  [host] = (json as { resource_providers: [typeof host] }).resource_providers;
});

afterAll(() => server.close());

function claim(amounts: Record<string, object>, generation: number | null) {
  return { allocations: amounts, consumer_generation: generation, ...owner };
}

async function place(name: string): Promise<string> {
  await server.client.create('task', { metadata: { name }, spec: { cpus: 2, memoryMiB: 1024, ttlMs: 60_000 } });
  for await (const change of server.client.watch('task', { revision: 0 })) {
    if (change.type !== 'put' || change.resource.metadata.name !== name) continue;
    const { phase, conditions } = change.resource.status;
    if (phase === 'Placed' || (conditions ?? []).length > 0) return phase;
  }
  throw new Error('the watch ended');
}

describe('the ledger', () => {
  it('shows hosts with their inventories', async () => {
    const { json } = await ask('GET', `/resource_providers/${host.uuid}/inventories`);
    expect(json).toMatchObject({ inventories: { VCPU: { total: 4, allocation_ratio: 1 }, DISK_GB: { total: 100 } } });
  });

  it('shows pools as aggregates of their hosts', async () => {
    const { metadata, spec } = await server.client.get('host', 'h1');
    await server.client.replace('host', 'h1', { metadata, spec: { ...spec, pool: 'ci' } });
    const aggregates = `/resource_providers/${host.uuid}/aggregates`;
    const { json } = await ask('GET', aggregates);
    const shown = json as { aggregates: string[]; resource_provider_generation: number };
    expect(shown.aggregates).toEqual([poolAggregate('ci')]);
    const found = async (path: string) => (await ask('GET', `${path}member_of=${poolAggregate('ci')}`)).json;
    expect(await found('/resource_providers?')).toMatchObject({ resource_providers: [{ name: 'h1' }] });
    expect(await found('/allocation_candidates?resources=VCPU:1&')).toMatchObject({
      allocation_requests: [{ allocations: { [host.uuid]: { resources: { VCPU: 1 } } } }],
    });
    // Sent back as shown, it is no aggregate of the provider itself.
    expect(await ask('PUT', aggregates, { body: shown })).toMatchObject({ status: 200 });
    const moved = await server.client.get('host', 'h1');
    await server.client.replace('host', 'h1', { metadata: moved.metadata, spec });
    expect((await ask('GET', aggregates)).json).toMatchObject({ aggregates: [] });
  });

  it('counts a claim of another system for the scheduler at once, and no more after its release', async () => {
    const body = claim({ [host.uuid]: { resources: { VCPU: 3 } } }, null);
    expect(await ask('PUT', `/allocations/${consumer}`, { body })).toMatchObject({ status: 204 });
    const task = { metadata: { name: 'first' }, spec: { cpus: 2, memoryMiB: 1024, ttlMs: 60_000 } };
    expect(await server.client.json('/v1/capacity?cpus=2&memoryMiB=512')).toMatchObject({ sizes: [{ more: 0 }] });
    const { client } = server;
    await client.create('image', { metadata: { name: 'tiny' }, spec: { source: 'file:///tmp/tiny.qcow2' } });
    await client.create('instance', { metadata: { name: 'waits' }, spec: { image: 'tiny', cpus: 2, memoryMiB: 512 } });
    const { hosts, nearest = [] } = await client.explain('waits');
    expect(hosts[0]?.refusals[0]?.message).toMatch(/; 3 VCPU are held by an outside consumer$/);
    expect(nearest).toContainEqual(
      expect.objectContaining({ message: `when the claim of outside consumer ${consumer} ends on h1`, instances: [] }),
    );
    await client.delete('instance', 'waits');
    expect((await ask('DELETE', `/allocations/${consumer}`)).status).toBe(204);
    expect(await server.client.json('/v1/capacity?cpus=2&memoryMiB=512')).toMatchObject({ sizes: [{ more: 2 }] });
    expect(await place(task.metadata.name)).toBe('Placed');
  });

  it('shows our consumers, and counts their claims against those of other systems', async () => {
    const { json } = await ask('GET', `/resource_providers/${host.uuid}/allocations`);
    const { allocations } = json as { allocations: Record<string, { resources: object }> };
    const [[uuid, held] = ['', {}]] = Object.entries(allocations);
    expect(held).toMatchObject({ resources: { VCPU: 2, MEMORY_MB: 1024 } });
    expect((await ask('GET', `/allocations/${uuid}`)).json).toMatchObject({
      project_id: 'default',
      consumer_type: 'TASK',
    });
    const shown = await server.client.ledgerProvider('h1');
    expect(shown).toMatchObject({
      ...{ uuid: host.uuid, name: 'h1', inventories: { VCPU: { total: 4, used: 2 }, MEMORY_MB: { used: 1024 } } },
      allocations: [{ consumer: uuid, type: 'TASK', project: 'default', amounts: { VCPU: 2, MEMORY_MB: 1024 } }],
    });
    expect(await server.client.ledgerProvider(host.uuid.toUpperCase())).toEqual(shown);
    await expect(server.client.ledgerProvider('none')).rejects.toMatchObject({ code: 'NotFound' });
    const body = claim({ [host.uuid]: { resources: { VCPU: 3 } } }, null);
    const refused = await ask('PUT', `/allocations/${consumer}`, { body });
    expect(refused.status).toBe(409);
    expect(JSON.stringify(refused.json)).toContain('would exceed the capacity');
    expect((await ask('DELETE', `/allocations/${uuid}`)).status).toBe(409);
  });

  it('refuses what only the host and its operator may change', async () => {
    const path = `/resource_providers/${host.uuid}`;
    const { json } = await ask('GET', path);
    const { generation } = json as typeof host;
    expect(await ask('DELETE', path)).toMatchObject({
      status: 409,
      json: { errors: [{ detail: expect.stringContaining('berth host rm h1') }] },
    });
    expect((await ask('PUT', path, { body: { name: 'other' } })).status).toBe(409);
    const inventories = { inventories: {}, resource_provider_generation: generation };
    expect((await ask('PUT', `${path}/inventories`, { body: inventories })).status).toBe(409);
    const traits = { traits: ['HW_CPU_X86_VMX'], resource_provider_generation: generation };
    expect((await ask('PUT', `${path}/traits`, { body: traits })).status).toBe(200);
  });

  it('takes what a client states of the inventories of a host into its spec, where it outlasts the agent’s next report', async () => {
    const path = `/resource_providers/${host.uuid}`;
    await ask('PUT', '/resource_classes/CUSTOM_LICENSE');
    const read = async () =>
      (await ask('GET', `${path}/inventories`)).json as {
        inventories: Record<string, Record<string, number>>;
        resource_provider_generation: number;
      };
    const put = async (change: Record<string, object | undefined>) => {
      const { inventories, resource_provider_generation: generation } = await read();
      const all: Record<string, object> = {};
      for (const [name, each] of Object.entries({ ...inventories, ...change })) if (each) all[name] = each;
      return ask('PUT', `${path}/inventories`, {
        body: { inventories: all, resource_provider_generation: generation },
      });
    };
    const { VCPU: cpus = {} } = (await read()).inventories;
    expect((await put({ VCPU: { ...cpus, total: 64 } })).status).toBe(409); // measured
    expect((await put({ VCPU: undefined })).status).toBe(409);
    expect((await put({ VCPU: { ...cpus, reserved: 3 } })).json).toMatchObject({
      errors: [{ detail: expect.stringContaining('2 VCPU of h1 are claimed'), code: 'placement.inventory.inuse' }],
    });
    const stated = { VCPU: { ...cpus, reserved: 1, allocation_ratio: 1.5 }, CUSTOM_LICENSE: { total: 3 } };
    expect(await put(stated)).toMatchObject({ status: 200, json: { inventories: { CUSTOM_LICENSE: { total: 3 } } } });
    expect((await server.client.get('host', 'h1')).spec).toMatchObject({
      ...{ reserved: { VCPU: 1 }, allocationRatios: { VCPU: 1.5 } },
      inventory: { CUSTOM_LICENSE: { total: 3 } },
    });
    const capacity = { VCPU: 6, MEMORY_MB: 8192, DISK_GB: 100 };
    await server.agentClient('h1').register(testRegistration({ session: 'session-2', capacity }));
    expect((await read()).inventories).toMatchObject({
      ...{ VCPU: { total: 6, reserved: 1, allocation_ratio: 1.5 }, CUSTOM_LICENSE: { total: 3 } },
    });
    expect((await put({ CUSTOM_LICENSE: undefined, VCPU: { ...cpus, total: 6 } })).status).toBe(200);
    expect(Object.keys((await read()).inventories).sort()).toEqual(['DISK_GB', 'MEMORY_MB', 'VCPU']);
    await server.agentClient('h1').register(testRegistration({ session: 'session-3' }));
  });

  it('places by a query with the tree, the aggregate and the class that a client gave a host', async () => {
    const path = `/resource_providers/${host.uuid}`;
    const generation = async () => ((await ask('GET', path)).json as typeof host).generation;
    const vgpu = { resource_class: 'VGPU', total: 2, resource_provider_generation: await generation() };
    expect((await ask('POST', `${path}/inventories`, { body: vgpu })).status).toBe(201);
    const aggregates = { aggregates: [outside], resource_provider_generation: await generation() };
    expect((await ask('PUT', `${path}/aggregates`, { body: aggregates })).status).toBe(200);
    const query = `resources=VCPU:1&resources_g=VGPU:2&member_of_g=${outside}&in_tree=${host.uuid}&same_subtree=_g`;
    const spec = { memoryMiB: 256, ttlMs: 60_000, placement: { query } };
    await server.client.create('task', { metadata: { name: 'by-query' }, spec });
    expect((await ask('GET', `${path}/usages`)).json).toMatchObject({ usages: { VGPU: 2 } });
    const candidates = async (text: string) =>
      (await server.client.json<{ counts: { fit: number } }>(`/v1/candidates?${text}`)).counts.fit;
    expect(await candidates(`resources=VCPU:1&in_tree=${host.uuid}`)).toBe(1);
    expect(await candidates(query)).toBe(0); // the VGPUs are held
    await server.client.delete('task', 'by-query');
    await expect.poll(async () => (await ask('GET', `${path}/usages`)).json).toMatchObject({ usages: { VGPU: 0 } });
  });

  it('shares what an outside provider has with the hosts of a pool', async () => {
    const { metadata, spec } = await server.client.get('host', 'h1');
    await server.client.replace('host', 'h1', { metadata, spec: { ...spec, pool: 'ci' } });
    const shared = '66666666-6666-4666-8666-666666666666';
    const path = `/resource_providers/${shared}`;
    await ask('PUT', '/resource_classes/CUSTOM_NFS_GB');
    await ask('POST', '/resource_providers', { body: { name: 'nfs', uuid: shared } });
    const inventories = { CUSTOM_NFS_GB: { total: 10 } };
    await ask('PUT', `${path}/inventories`, { body: { inventories, resource_provider_generation: 0 } });
    const traits = { traits: ['MISC_SHARES_VIA_AGGREGATE'], resource_provider_generation: 1 };
    await ask('PUT', `${path}/traits`, { body: traits });
    const candidates = async () =>
      (
        (await ask('GET', '/allocation_candidates?resources=VCPU:1,CUSTOM_NFS_GB:4')).json as {
          allocation_requests: object[];
        }
      ).allocation_requests;
    expect(await candidates()).toEqual([]);
    const aggregates = { aggregates: [poolAggregate('ci')], resource_provider_generation: 2 };
    await ask('PUT', `${path}/aggregates`, { body: aggregates });
    expect(await candidates()).toMatchObject([
      {
        allocations: {
          [host.uuid]: { resources: { VCPU: 1 } },
          [shared]: { resources: { CUSTOM_NFS_GB: 4 } },
        },
      },
    ]);
    const moved = await server.client.get('host', 'h1');
    await server.client.replace('host', 'h1', { metadata: moved.metadata, spec });
    expect(await candidates()).toEqual([]);
  });

  it('holds a claim of a host and of an outside provider together or not at all', async () => {
    await ask('POST', '/resource_providers', { body: { name: 'pool', uuid: outside } });
    const inventories = { inventories: { DISK_GB: { total: 10 } }, resource_provider_generation: 0 };
    await ask('PUT', `/resource_providers/${outside}/inventories`, { body: inventories });
    const both = (gib: number) =>
      claim({ [host.uuid]: { resources: { VCPU: 1 } }, [outside]: { resources: { DISK_GB: gib } } }, null);
    expect((await ask('PUT', `/allocations/${consumer}`, { body: both(11) })).status).toBe(409);
    expect((await ask('GET', `/allocations/${consumer}`)).json).toEqual({ allocations: {} });
    expect((await ask('PUT', `/allocations/${consumer}`, { body: both(10) })).status).toBe(204);
    const { decider } = server.plane;
    expect(overUse(decider.cache)).toEqual([]);
    expect([...verify(decider.cache)].filter((fault) => fault !== undefined)).toEqual([]);
    expect((await ask('DELETE', `/resource_providers/${outside}`)).json).toMatchObject({
      errors: [{ code: 'placement.resource_provider.inuse' }],
    });
  });

  it('lets one of many clients have the last unit', async () => {
    const consumers = Array.from({ length: 8 }, (_, i) => `33333333-3333-4333-8333-33333333333${i}`);
    const body = claim({ [host.uuid]: { resources: { VCPU: 1 } } }, null);
    const answers = await Promise.all(consumers.map((id) => ask('PUT', `/allocations/${id}`, { body })));
    expect(answers.map(({ status }) => status).sort()).toEqual([204, ...Array.from({ length: 7 }, () => 409)]);
  });
});

describe('who may ask', () => {
  it('needs a token, except at the root', async () => {
    expect((await ask('GET', '/resource_providers', { headers: { 'x-auth-token': 'nobody' } })).status).toBe(401);
    expect((await ask('GET', '/', { headers: { 'x-auth-token': '' } })).status).toBe(200);
  });

  it('refuses the token of a host', async () => {
    const asked = await ask('GET', '/resource_providers', { headers: { 'x-auth-token': 'host:h1' } });
    expect(asked.status).toBe(403);
  });
});
