import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestServer } from '../testing.ts';
import { type Ask, placementClient } from './testing.ts';
import { askedVersion } from './versions.ts';

let server: Awaited<ReturnType<typeof startTestServer>>;
let ask: Ask;

const provider = '44444444-4444-4444-8444-444444444444';
const consumer = '55555555-5555-4555-8555-555555555555';
const at = `/resource_providers/${provider}`;

beforeAll(async () => {
  server = await startTestServer();
  ask = placementClient(server.url);
  await ask('POST', '/resource_providers', { body: { name: 'one', uuid: provider } });
  const body = { inventories: { VCPU: { total: 8 } }, resource_provider_generation: 0 };
  await ask('PUT', `${at}/inventories`, { body });
});

afterAll(() => server.close());

describe('the version asked for', () => {
  it.each([
    [undefined, { version: 0 }],
    ['placement latest', { version: 39 }],
    ['placement 1.7', { version: 7 }],
    ['compute 2.1, placement 1.7', { version: 7 }],
    ['compute 2.1', { version: 0 }],
    ['placement 1.40', { status: 406 }],
    ['placement 2.0', { status: 406 }],
    ['placement one', { status: 400 }],
  ])('%s', (header, expected) => expect(askedVersion(header)).toMatchObject(expected));
});

/** Each row: a request, the status before the version, and from it on. */
const routes: readonly (readonly [method: string, path: string, before: number, since: number, then: number])[] = [
  ['GET', '/', 200, 0, 200],
  ['GET', '/resource_providers', 200, 0, 200],
  ['GET', at, 200, 0, 200],
  ['GET', `${at}/inventories`, 200, 0, 200],
  ['GET', `${at}/inventories/VCPU`, 200, 0, 200],
  ['GET', `${at}/usages`, 200, 0, 200],
  ['GET', `${at}/allocations`, 200, 0, 200],
  ['GET', `/allocations/${consumer}`, 200, 0, 200],
  ['GET', `${at}/aggregates`, 404, 1, 200],
  ['GET', '/resource_classes', 404, 2, 200],
  ['GET', '/resource_classes/VCPU', 404, 2, 200],
  ['DELETE', `/resource_providers/${consumer}/inventories`, 405, 5, 404],
  ['GET', '/traits', 404, 6, 200],
  ['GET', '/traits/HW_CPU_X86_VMX', 404, 6, 204],
  ['GET', `${at}/traits`, 404, 6, 200],
  ['GET', '/usages?project_id=p', 404, 9, 200],
  ['GET', '/allocation_candidates?resources=VCPU:1', 404, 10, 200],
  ['POST', '/allocations', 404, 13, 400],
  ['POST', '/reshaper', 404, 30, 400],
  // Parameters and members of bodies.
  ['GET', '/resource_providers?member_of=44444444-4444-4444-8444-444444444444', 400, 3, 200],
  ['GET', '/resource_providers?resources=VCPU:1', 400, 4, 200],
  ['GET', `/resource_providers?in_tree=${provider}`, 400, 14, 200],
  ['GET', '/resource_providers?required=HW_CPU_X86_VMX', 400, 18, 200],
  ['GET', '/resource_providers?required=!HW_CPU_X86_VMX', 400, 22, 200],
  ['GET', `/resource_providers?member_of=${provider}&member_of=${consumer}`, 400, 24, 200],
  ['GET', `/resource_providers?member_of=!${provider}`, 400, 32, 200],
  ['GET', '/resource_providers?required=in:HW_CPU_X86_VMX,HW_CPU_X86_AVX', 400, 39, 200],
];

describe('a request at every version', () => {
  it.each(routes)('%s %s answers %i before 1.%i, then %i', async (method, path, before, since, then) => {
    const body = method === 'POST' ? {} : undefined;
    for (let version = 0; version <= 39; version++) {
      const { status } = await ask(method, path, { version, body });
      expect([version, status]).toEqual([version, version < since ? before : then]);
    }
  });
});

/** A query of candidates, from which version it is understood. */
const candidates: readonly (readonly [query: string, since: number])[] = [
  ['resources=VCPU:1&limit=1', 16],
  ['resources=VCPU:1&required=HW_CPU_X86_VMX', 17],
  [`resources=VCPU:1&member_of=${provider}`, 21],
  ['resources=VCPU:1&required=!HW_CPU_X86_VMX', 22],
  [`resources=VCPU:1&member_of=${provider}&member_of=${consumer}`, 24],
  ['resources1=VCPU:1', 25],
  [`resources=VCPU:1&in_tree=${provider}`, 31],
  [`resources=VCPU:1&member_of=!${provider}`, 32],
  ['resources_COMPUTE=VCPU:1', 33],
  ['resources=VCPU:1&root_required=HW_CPU_X86_VMX', 35],
  ['resources_A=VCPU:1&required_B=HW_CPU_X86_VMX&same_subtree=_A,_B&group_policy=none', 36],
  ['resources=VCPU:1&required=in:HW_CPU_X86_VMX,HW_CPU_X86_AVX', 39],
];

describe('a query of allocation candidates', () => {
  it.each(candidates)('%s is understood from 1.%i on', async (query, since) => {
    for (const version of [since - 1, since, 39]) {
      const { status } = await ask('GET', `/allocation_candidates?${query}`, { version });
      expect([version, status]).toEqual([version, version < since ? 400 : 200]);
    }
  });
});

describe('the shape of an answer', () => {
  const keysOf = async (path: string, version: number) =>
    Object.keys((await ask('GET', path, { version })).json as object).sort();

  it('has the parent and the root of a provider from 1.14 on', async () => {
    expect(await keysOf(at, 13)).toEqual(['generation', 'links', 'name', 'uuid']);
    expect(await keysOf(at, 14)).toContain('root_provider_uuid');
  });

  it('has links to what the version knows', async () => {
    const links = async (version: number) => {
      const { json } = await ask('GET', at, { version });
      return (json as { links: { rel: string }[] }).links.map(({ rel }) => rel);
    };
    expect(await links(0)).toEqual(['self', 'inventories', 'usages']);
    expect(await links(1)).toContain('aggregates');
    expect(await links(6)).toContain('traits');
    expect(await links(11)).toContain('allocations');
  });

  it('says when it was changed from 1.15 on', async () => {
    expect((await ask('GET', at, { version: 14 })).headers.get('last-modified')).toBeNull();
    const { headers } = await ask('GET', at, { version: 15 });
    expect(headers.get('last-modified')).not.toBeNull();
    expect(headers.get('cache-control')).toBe('no-cache');
  });

  it('has a provider in the answer to its creation from 1.20 on', async () => {
    const create = (name: string, version: number) => ask('POST', '/resource_providers', { body: { name }, version });
    expect(await create('at-19', 19)).toMatchObject({ status: 201, json: undefined });
    expect(await create('at-20', 20)).toMatchObject({ status: 200, json: { name: 'at-20', generation: 0 } });
  });

  it('has the code of an error from 1.23 on', async () => {
    const errorAt = async (version: number) => (await ask('GET', '/traits/NOPE', { version })).json;
    expect(await errorAt(22)).toEqual({ errors: [expect.not.objectContaining({ code: expect.anything() })] });
    expect(await errorAt(23)).toMatchObject({
      errors: [{ status: 404, title: 'Not Found', code: 'placement.undefined_code' }],
    });
  });
});

it('names the trace of the request in errors, as our own API does', async () => {
  const headers = { traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01' };
  expect((await ask('GET', '/traits/NOPE', { headers })).json).toMatchObject({
    errors: [{ trace_id: '4bf92f3577b34da6a3ce929d0e0e4736', request_id: expect.stringMatching(/^req-/) }],
  });
  expect((await ask('GET', '/traits/NOPE')).json).toMatchObject({
    errors: [{ trace_id: expect.stringMatching(/^[0-9a-f]{32}$/) }],
  });
});

describe('allocations of each version', () => {
  const list = { allocations: [{ resource_provider: { uuid: provider }, resources: { VCPU: 1 } }] };
  const byProvider = { allocations: { [provider]: { resources: { VCPU: 1 } } } };
  const owner = { project_id: 'p', user_id: 'u' };

  it.each([
    [0, list],
    [8, { ...list, ...owner }],
    [12, { ...byProvider, ...owner }],
    [28, { ...byProvider, ...owner, consumer_generation: null }],
    [34, { ...byProvider, ...owner, consumer_generation: null, mappings: { '': [provider] } }],
    [38, { ...byProvider, ...owner, consumer_generation: null, consumer_type: 'INSTANCE' }],
  ])('take the form of 1.%i, and no version takes the form of an earlier one', async (version, body) => {
    const path = `/allocations/${consumer}`;
    expect((await ask('PUT', path, { version, body })).status).toBe(204);
    expect((await ask('GET', path, { version })).json).toMatchObject({
      allocations: { [provider]: { resources: { VCPU: 1 } } },
    });
    expect((await ask('DELETE', path)).status).toBe(204);
    if (version === 0 || version === 34) return;
    expect((await ask('PUT', path, { version: version - 1, body })).status).toBe(400);
  });

  it('are refused with the generation of another consumer', async () => {
    const body = { ...byProvider, ...owner, consumer_generation: 3, consumer_type: 'X' };
    expect(await ask('PUT', `/allocations/${consumer}`, { body })).toMatchObject({
      status: 409,
      json: { errors: [{ code: 'placement.concurrent_update' }] },
    });
  });
});
