// The shape of every answer at every version: the members of each read, and from which version it has them. After the version history of
// OpenStack Placement.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestServer } from '../testing.ts';
import { placementRoutes } from './app.ts';
import { type Ask, placementClient } from './testing.ts';
import { type ByVersion, formAt, versionMax } from './versions.ts';

let server: Awaited<ReturnType<typeof startTestServer>>;
let ask: Ask;

const provider = '44444444-4444-4444-8444-444444444444';
const child = '44444444-4444-4444-8444-444444444445';
const consumer = '55555555-5555-4555-8555-555555555555';
const at = `/resource_providers/${provider}`;
const owner = { project_id: 'p', user_id: 'u' };

beforeAll(async () => {
  server = await startTestServer();
  ask = placementClient(server.url);
  await ask('POST', '/resource_providers', { body: { name: 'one', uuid: provider } });
  const inventories = { VCPU: { total: 8 }, DISK_GB: { total: 10 } };
  await ask('PUT', `${at}/inventories`, { body: { inventories, resource_provider_generation: 0 } });
  const allocations = { [provider]: { resources: { VCPU: 1 } } };
  const body = { allocations, ...owner, consumer_generation: null, consumer_type: 'INSTANCE' };
  await ask('PUT', `/allocations/${consumer}`, { body });
});

afterAll(() => server.close());

interface Read {
  readonly path: string;
  /** Where in the answer: names of members, and numbers of elements. Absent: the whole. */
  readonly in?: readonly (string | number)[];
  /** The members there, from each version on; before the first the route is not there. */
  readonly has: ByVersion<string>;
  /** Of the route. */
  readonly route: string;
}

const plainProvider = 'generation links name uuid';
const nestedProvider = 'generation links name parent_provider_uuid root_provider_uuid uuid';
const inventory = 'allocation_ratio max_unit min_unit reserved step_size total';
const usages = '/usages?project_id=p&user_id=u';
const candidates = '/allocation_candidates?resources=VCPU:1';

const reads: readonly Read[] = [
  { route: '/', path: '/', has: [[0, 'versions']] },
  { route: '/', path: '/', in: ['versions', 0], has: [[0, 'id links max_version min_version status']] },
  { route: '/resource_providers', path: '/resource_providers', has: [[0, 'resource_providers']] },
  {
    ...{ route: '/resource_providers', path: '/resource_providers?name=one', in: ['resource_providers', 0] },
    has: [
      [0, plainProvider],
      [14, nestedProvider],
    ],
  },
  {
    ...{ route: '/resource_providers/:uuid', path: at },
    has: [
      [0, plainProvider],
      [14, nestedProvider],
    ],
  },
  {
    ...{ route: '/resource_providers/:uuid', path: at, in: ['links'] },
    has: [
      [0, 'inventories self usages'],
      [1, 'aggregates inventories self usages'],
      [6, 'aggregates inventories self traits usages'],
      [11, 'aggregates allocations inventories self traits usages'],
    ],
  },
  {
    ...{ route: '/resource_providers/:uuid/inventories', path: `${at}/inventories` },
    has: [[0, 'inventories resource_provider_generation']],
  },
  {
    ...{ route: '/resource_providers/:uuid/inventories', path: `${at}/inventories`, in: ['inventories', 'VCPU'] },
    has: [[0, inventory]],
  },
  {
    ...{ route: '/resource_providers/:uuid/inventories/:resourceClass', path: `${at}/inventories/VCPU` },
    has: [[0, 'allocation_ratio max_unit min_unit reserved resource_provider_generation step_size total']],
  },
  {
    ...{ route: '/resource_providers/:uuid/usages', path: `${at}/usages` },
    has: [[0, 'resource_provider_generation usages']],
  },
  {
    ...{ route: '/resource_providers/:uuid/usages', path: `${at}/usages`, in: ['usages'] },
    has: [[0, 'DISK_GB VCPU']],
  },
  {
    ...{ route: '/resource_providers/:uuid/allocations', path: `${at}/allocations` },
    has: [[0, 'allocations resource_provider_generation']],
  },
  {
    ...{ route: '/resource_providers/:uuid/allocations', path: `${at}/allocations`, in: ['allocations', consumer] },
    has: [
      [0, 'resources'],
      [28, 'consumer_generation resources'],
    ],
  },
  {
    ...{ route: '/resource_providers/:uuid/aggregates', path: `${at}/aggregates` },
    has: [
      [1, 'aggregates'],
      [19, 'aggregates resource_provider_generation'],
    ],
  },
  {
    ...{ route: '/resource_providers/:uuid/traits', path: `${at}/traits` },
    has: [[6, 'resource_provider_generation traits']],
  },
  { route: '/traits', path: '/traits?name=in:HW_CPU_X86_VMX&associated=false', has: [[6, 'traits']] },
  { route: '/resource_classes', path: '/resource_classes', has: [[2, 'resource_classes']] },
  {
    ...{ route: '/resource_classes', path: '/resource_classes', in: ['resource_classes', 0] },
    has: [[2, 'links name']],
  },
  { route: '/resource_classes/:name', path: '/resource_classes/VCPU', has: [[2, 'links name']] },
  { route: '/usages', path: usages, has: [[9, 'usages']] },
  {
    ...{ route: '/usages', path: usages, in: ['usages'] },
    has: [
      [9, 'VCPU'],
      [38, 'INSTANCE'],
    ],
  },
  {
    ...{ route: '/allocations/:consumer', path: `/allocations/${consumer}` },
    has: [
      [0, 'allocations'],
      [12, 'allocations project_id user_id'],
      [28, 'allocations consumer_generation project_id user_id'],
      [38, 'allocations consumer_generation consumer_type project_id user_id'],
    ],
  },
  {
    ...{ route: '/allocations/:consumer', path: `/allocations/${consumer}`, in: ['allocations', provider] },
    has: [[0, 'generation resources']],
  },
  { route: '/allocation_candidates', path: candidates, has: [[10, 'allocation_requests provider_summaries']] },
  {
    ...{ route: '/allocation_candidates', path: candidates, in: ['allocation_requests', 0] },
    has: [
      [10, 'allocations'],
      [34, 'allocations mappings'],
    ],
  },
  {
    ...{ route: '/allocation_candidates', path: candidates, in: ['allocation_requests', 0, 'allocations', 0] },
    has: [
      [10, 'resource_provider resources'],
      [12, ''], // by provider, and no list
    ],
  },
  {
    ...{ route: '/allocation_candidates', path: candidates, in: ['provider_summaries', provider] },
    has: [
      [10, 'resources'],
      [17, 'resources traits'],
      [29, 'parent_provider_uuid resources root_provider_uuid traits'],
    ],
  },
  {
    ...{ route: '/allocation_candidates', path: candidates, in: ['provider_summaries', provider, 'resources'] },
    has: [
      [10, 'VCPU'],
      [27, 'DISK_GB VCPU'],
    ],
  },
];

describe('an answer at every version', () => {
  it.each(reads)('$path $in', async ({ path, in: where = [], has }) => {
    for (let version = 0; version <= versionMax; version++) {
      const expected = formAt(has, version);
      const { status, json, headers } = await ask('GET', path, { version });
      const found = status === 200 ? membersOf(partOf(json, where)) : undefined;
      expect([version, status, found]).toEqual([version, expected === undefined ? 404 : 200, expected]);
      expect([version, headers.has('last-modified')]).toEqual([version, status === 200 && version >= 15]);
      expect(headers.get('openstack-api-version')).toBe(`placement 1.${version}`);
    }
  });

  it('is asked of every route that has one', () => {
    const all = placementRoutes.filter(({ method }) => method === 'GET').map(({ path }) => path);
    expect(all.filter((path) => !reads.some(({ route }) => route === path))).toEqual(['/traits/:name']); // no body
  });
});

function partOf(json: unknown, where: readonly (string | number)[]): unknown {
  let part = json;
  for (const name of where) part = (part as Record<string | number, unknown> | undefined)?.[name];
  return part;
}

/** Of links: their names. */
function membersOf(part: unknown): string {
  const names = Array.isArray(part) ? part.map(({ rel }: { rel: string }) => rel) : Object.keys(part ?? {});
  return names.sort().join(' ');
}

describe('what changed besides', () => {
  it('candidates use a child of a tree from 1.29 on', async () => {
    await ask('POST', '/resource_providers', { body: { name: 'part', uuid: child, parent_provider_uuid: provider } });
    const inventories = { VGPU: { total: 2 } };
    const path = `/resource_providers/${child}/inventories`;
    await ask('PUT', path, { body: { inventories, resource_provider_generation: 0 } });
    const found = async (version: number) => {
      const { json } = await ask('GET', '/allocation_candidates?resources=VCPU:1,VGPU:1', { version });
      return (json as { allocation_requests: unknown[] }).allocation_requests.length;
    };
    expect([await found(28), await found(29), await found(39)]).toEqual([0, 1, 1]);
  });

  it('no allocations remove a consumer from 1.28 on', async () => {
    const gone = '55555555-5555-4555-8555-555555555556';
    const path = `/allocations/${gone}`;
    const allocations = { [provider]: { resources: { VCPU: 1 } } };
    expect((await ask('PUT', path, { version: 27, body: { allocations, ...owner } })).status).toBe(204);
    const empty = { allocations: {}, ...owner };
    expect((await ask('PUT', path, { version: 27, body: empty })).status).toBe(400);
    const body = { ...empty, consumer_generation: 1 };
    expect((await ask('PUT', path, { version: 28, body })).status).toBe(204);
    expect((await ask('GET', path)).json).toEqual({ allocations: {} });
  });

  it('a resource class can be renamed from 1.2 to 1.6', async () => {
    const rename = (version: number) =>
      ask('PUT', '/resource_classes/CUSTOM_OLD', { version, body: { name: 'CUSTOM_NEW' } });
    expect([(await rename(1)).status, (await rename(2)).status, (await rename(6)).status]).toEqual([404, 404, 404]);
    await ask('POST', '/resource_classes', { body: { name: 'CUSTOM_OLD' } });
    expect((await rename(1)).status).toBe(404);
    expect(await rename(2)).toMatchObject({ status: 200, json: { name: 'CUSTOM_NEW' } });
  });

  it('the type of a consumer is asked for from 1.38 on', async () => {
    const typed = (version: number) => ask('GET', `${usages}&consumer_type=INSTANCE`, { version });
    expect([(await typed(37)).status, (await typed(38)).status]).toEqual([400, 200]);
  });
});
