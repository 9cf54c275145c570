// What changed with each version besides what versions.test.ts asks: writes, and the shapes of bodies and answers. After the version history
// of OpenStack Placement.

import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestServer } from '../testing.ts';
import { type Ask, placementClient } from './testing.ts';

let server: Awaited<ReturnType<typeof startTestServer>>;
let ask: Ask;
const owner = { project_id: 'shapes', user_id: 'u' };

beforeAll(async () => {
  server = await startTestServer();
  ask = placementClient(server.url);
});
afterAll(() => server.close());

/** A provider with 8 VCPU, 100 DISK_GB and a trait. */
async function newProvider(parent?: string): Promise<string> {
  const uuid = randomUUID();
  const body = { name: uuid, uuid, ...(parent === undefined ? {} : { parent_provider_uuid: parent }) };
  await ask('POST', '/resource_providers', { body });
  const inventories = { VCPU: { total: 8 }, DISK_GB: { total: 100 } };
  const at = `/resource_providers/${uuid}`;
  await ask('PUT', `${at}/inventories`, { body: { inventories, resource_provider_generation: 0 } });
  await ask('PUT', `${at}/traits`, { body: { traits: ['HW_CPU_X86_VMX'], resource_provider_generation: 1 } });
  return uuid;
}

async function statuses(versions: readonly number[], act: (version: number) => Promise<{ status: number }>) {
  const all: number[] = [];
  for (const version of versions) all.push((await act(version)).status);
  return all;
}

async function jsonAt(path: string, version: number): Promise<Record<string, unknown>> {
  const { status, json } = await ask('GET', path, { version });
  expect(status).toBe(200);
  return json as Record<string, unknown>; // 200: it has a body
}

describe('writes', () => {
  it('of aggregates are there from 1.1 on, and name the generation from 1.19 on', async () => {
    const path = `/resource_providers/${await newProvider()}/aggregates`;
    const put = (body: unknown) => (version: number) => ask('PUT', path, { version, body });
    expect(await statuses([0, 1, 18, 19], put([randomUUID()]))).toEqual([404, 200, 200, 400]);
    const generation = async () => (await jsonAt(path, 19))['resource_provider_generation'];
    const told = { aggregates: [], resource_provider_generation: await generation() };
    expect(await statuses([18, 19], put(told))).toEqual([400, 200]);
    expect(Object.keys(await jsonAt(path, 18))).toEqual(['aggregates']);
  });

  it('of resource classes are there from 1.2 on; PUT renames until 1.6, and creates from 1.7 on', async () => {
    const create = (version: number) =>
      ask('POST', '/resource_classes', { version, body: { name: `CUSTOM_V${version}` } });
    expect(await statuses([1, 2, 39], create)).toEqual([404, 201, 201]);
    const rename = await ask('PUT', '/resource_classes/CUSTOM_V2', { version: 6, body: { name: 'CUSTOM_RENAMED' } });
    expect(rename).toMatchObject({ status: 200, json: { name: 'CUSTOM_RENAMED' } });
    const put = (version: number) => ask('PUT', '/resource_classes/CUSTOM_PUT', { version });
    expect(await statuses([6], put)).toEqual([415]);
    expect(await statuses([7, 39], put)).toEqual([201, 204]);
    const remove = (version: number) => ask('DELETE', '/resource_classes/CUSTOM_PUT', { version });
    expect(await statuses([1, 2, 39], remove)).toEqual([404, 204, 404]);
  });

  it('of traits are answered with the standard ones first', async () => {
    const uuid = await newProvider();
    await ask('PUT', '/traits/CUSTOM_A');
    const traits = ['CUSTOM_A', 'HW_NUMA_ROOT', 'HW_CPU_X86_AVX'];
    const shown = ['HW_CPU_X86_AVX', 'HW_NUMA_ROOT', 'CUSTOM_A'];
    const body = { traits, resource_provider_generation: 2 };
    expect((await ask('PUT', `/resource_providers/${uuid}/traits`, { body })).json).toMatchObject({ traits: shown });
    const { provider_summaries: summaries } = await jsonAt(
      '/allocation_candidates?resources=VCPU:1&required=CUSTOM_A',
      39,
    );
    expect(summaries).toMatchObject({ [uuid]: { traits: shown } });
  });

  it('of traits are there from 1.6 on', async () => {
    const put = (version: number) => ask('PUT', '/traits/CUSTOM_SHAPE', { version });
    expect(await statuses([5, 6, 39], put)).toEqual([404, 201, 204]);
    const path = `/resource_providers/${await newProvider()}/traits`;
    const body = { traits: ['CUSTOM_SHAPE'], resource_provider_generation: 2 };
    expect(await statuses([5, 6], (version) => ask('PUT', path, { version, body }))).toEqual([404, 200]);
    expect(await statuses([5, 6], (version) => ask('DELETE', path, { version }))).toEqual([404, 204]);
    const remove = (version: number) => ask('DELETE', '/traits/CUSTOM_SHAPE', { version });
    expect(await statuses([5, 6], remove)).toEqual([404, 204]);
  });

  it('of all inventories can delete from 1.5 on', async () => {
    const path = `/resource_providers/${await newProvider()}/inventories`;
    expect(await statuses([4, 5], (version) => ask('DELETE', path, { version }))).toEqual([405, 204]);
  });

  it('may reserve all of an inventory from 1.26 on', async () => {
    const path = `/resource_providers/${await newProvider()}/inventories/VCPU`;
    const body = { total: 8, reserved: 8, resource_provider_generation: 2 };
    expect(await statuses([25, 26], (version) => ask('PUT', path, { version, body }))).toEqual([400, 200]);
  });

  it('of a provider name a parent from 1.14 on, and take it away or change it from 1.37 on', async () => {
    const [parent, other] = [await newProvider(), await newProvider()];
    const create = (version: number) =>
      ask('POST', '/resource_providers', { version, body: { name: randomUUID(), parent_provider_uuid: parent } });
    expect(await statuses([13, 14], create)).toEqual([400, 201]);
    const child = await newProvider(parent);
    const to = (next: string | null) => (version: number) =>
      ask('PUT', `/resource_providers/${child}`, { version, body: { name: child, parent_provider_uuid: next } });
    expect(await statuses([13, 36, 37], to(other))).toEqual([400, 400, 200]);
    expect(await statuses([36, 37], to(null))).toEqual([400, 200]);
  });

  it('of many allocations take the forms of one allocation, by consumer', async () => {
    const provider = await newProvider();
    const one = { allocations: { [provider]: { resources: { VCPU: 1 } } }, ...owner };
    const generation = { consumer_generation: null };
    const post = (more: object) => (version: number) =>
      ask('POST', '/allocations', { version, body: { [randomUUID()]: { ...one, ...more } } });
    expect(await statuses([12, 13, 27, 28], post({}))).toEqual([404, 204, 204, 400]);
    expect(await statuses([27, 28, 37, 38], post(generation))).toEqual([400, 204, 204, 400]);
    expect(await statuses([33, 34], post({ ...generation, mappings: { '': [provider] } }))).toEqual([400, 204]);
    expect(await statuses([37, 38], post({ ...generation, consumer_type: 'SHAPE' }))).toEqual([400, 204]);
  });

  it('of a tree in a reshape take consumers with a type from 1.38 on', async () => {
    const provider = await newProvider();
    const inventories = { [provider]: { resource_provider_generation: 2, inventories: { VCPU: { total: 8 } } } };
    const consumer = { allocations: { [provider]: { resources: { VCPU: 1 } } }, ...owner, consumer_generation: null };
    const reshape = (more: object) => (version: number) =>
      ask('POST', '/reshaper', {
        version,
        body: { inventories, allocations: { [randomUUID()]: { ...consumer, ...more } } },
      });
    expect(await statuses([29, 37, 38], reshape({ consumer_type: 'SHAPE' }))).toEqual([404, 400, 204]);
  });
});

describe('answers', () => {
  it('about a consumer have its owner from 1.12, its generation from 1.28 and its type from 1.38 on', async () => {
    const [provider, consumer] = [await newProvider(), randomUUID()];
    const allocations = { [provider]: { resources: { VCPU: 1 } } };
    const body = { allocations, ...owner, consumer_generation: null, consumer_type: 'SHAPE' };
    expect((await ask('PUT', `/allocations/${consumer}`, { body })).status).toBe(204);
    const keys = async (version: number) => Object.keys(await jsonAt(`/allocations/${consumer}`, version)).sort();
    const owned = ['allocations', 'project_id', 'user_id'];
    expect(await keys(11)).toEqual(['allocations']);
    expect(await keys(12)).toEqual(owned);
    expect(await keys(28)).toEqual(['allocations', 'consumer_generation', 'project_id', 'user_id']);
    expect(await jsonAt(`/allocations/${consumer}`, 38)).toMatchObject({
      consumer_type: 'SHAPE',
      consumer_generation: 1,
    });
    const ofProvider = `/resource_providers/${provider}/allocations`;
    expect(JSON.stringify(await jsonAt(ofProvider, 27))).not.toContain('consumer_generation');
    expect(await jsonAt(ofProvider, 28)).toMatchObject({ allocations: { [consumer]: { consumer_generation: 1 } } });
  });

  it('about usages are by type of consumer from 1.38 on', async () => {
    const provider = await newProvider();
    const body = {
      ...{ allocations: { [provider]: { resources: { VCPU: 2 } } }, consumer_generation: null },
      ...{ project_id: 'typed', user_id: 'u', consumer_type: 'SHAPE' },
    };
    await ask('PUT', `/allocations/${randomUUID()}`, { body });
    expect(await jsonAt('/usages?project_id=typed', 37)).toEqual({ usages: { VCPU: 2 } });
    expect(await jsonAt('/usages?project_id=typed', 38)).toEqual({ usages: { SHAPE: { VCPU: 2, consumer_count: 1 } } });
    expect((await ask('GET', '/usages?project_id=typed&consumer_type=SHAPE', { version: 37 })).status).toBe(400);
    expect((await ask('GET', '/usages?project_id=typed&consumer_type=SHAPE', { version: 38 })).status).toBe(200);
  });

  it('about candidates have the shape of their version', async () => {
    const provider = await newProvider();
    const found = async (version: number) => {
      const query = version >= 31 ? `&in_tree=${provider}` : '';
      const { allocation_requests: all, provider_summaries: summaries } = await jsonAt(
        `/allocation_candidates?resources=VCPU:1${query}`,
        version,
      );
      const requests = all as { allocations: object; mappings?: object }[];
      const mine = requests.find((each) => JSON.stringify(each).includes(provider));
      return { mine, summary: (summaries as Record<string, object>)[provider] };
    };
    const resources = { VCPU: 1 };
    expect((await found(11)).mine).toEqual({ allocations: [{ resource_provider: { uuid: provider }, resources }] });
    expect((await found(12)).mine).toEqual({ allocations: { [provider]: { resources } } });
    expect((await found(33)).mine).toEqual({ allocations: { [provider]: { resources } } });
    expect((await found(34)).mine).toMatchObject({ mappings: { '': [provider] } });
    const summaryAt = async (version: number) => (await found(version)).summary;
    expect(await summaryAt(16)).toEqual({ resources: { VCPU: expect.any(Object) } });
    expect(await summaryAt(17)).toEqual({ resources: { VCPU: expect.any(Object) }, traits: ['HW_CPU_X86_VMX'] });
    expect(await summaryAt(26)).not.toMatchObject({ resources: { DISK_GB: expect.any(Object) } });
    expect(await summaryAt(27)).toMatchObject({ resources: { DISK_GB: { used: 0 } } });
    expect(await summaryAt(28)).not.toHaveProperty('root_provider_uuid');
    expect(await summaryAt(29)).toMatchObject({ parent_provider_uuid: null, root_provider_uuid: provider });
  });
});
