// What is wrong with a request, and what the API answers: the statuses and codes of the original.

import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemFetch } from '../../base/system.ts';
import { startTestServer } from '../testing.ts';
import { type Ask, placementClient } from './testing.ts';

let server: Awaited<ReturnType<typeof startTestServer>>;
let ask: Ask;

const [root, child, other] = [1, 2, 3].map((at) => `88888888-8888-4888-8888-88888888888${at}`);
const consumer = '99999999-9999-4999-8999-999999999999';
const at = `/resource_providers/${root}`;
const owner = { project_id: 'p', user_id: 'u', consumer_type: 'INSTANCE' };
const long = (count: number) => 'A'.repeat(count);

beforeAll(async () => {
  server = await startTestServer();
  ask = placementClient(server.url);
  await ask('POST', '/resource_providers', { body: { name: 'root', uuid: root } });
  await ask('POST', '/resource_providers', { body: { name: 'child', uuid: child, parent_provider_uuid: root } });
  await ask('POST', '/resource_providers', { body: { name: 'other', uuid: other } });
  await ask('PUT', '/resource_classes/CUSTOM_USED');
  await ask('PUT', '/traits/CUSTOM_USED');
  const inventories = { VCPU: { total: 4 }, CUSTOM_USED: { total: 1 } };
  await ask('PUT', `${at}/inventories`, { body: { inventories, resource_provider_generation: 0 } });
  await ask('PUT', `${at}/traits`, { body: { traits: ['CUSTOM_USED'], resource_provider_generation: 1 } });
  const allocations = { [root ?? '']: { resources: { VCPU: 1, CUSTOM_USED: 1 } } };
  await ask('PUT', `/allocations/${consumer}`, { body: { allocations, consumer_generation: null, ...owner } });
});
afterAll(() => server.close());

const stock = (inventory: object, generation = 3) => ({
  inventories: { VCPU: { total: 4 }, CUSTOM_USED: { total: 1 }, ...inventory },
  resource_provider_generation: generation,
});
const claimed = (resources: object, generation: number | null = null, provider = root) => ({
  allocations: { [provider ?? '']: { resources } },
  consumer_generation: generation,
  ...owner,
});

type Row = readonly [what: string, call: string, status: number, body?: unknown, code?: string];
const undefinedCode = 'placement.undefined_code';

const rows: readonly Row[] = [
  // Names.
  ['a name of 201 characters', 'POST /resource_providers', 400, { name: long(201) }],
  ['no name', 'POST /resource_providers', 400, {}],
  ['an empty name', 'POST /resource_providers', 400, { name: '' }],
  ['a name that is a number', 'POST /resource_providers', 400, { name: 5 }],
  ['an unknown member', 'POST /resource_providers', 400, { name: 'x', colour: 'red' }],
  ['a UUID that is none', 'POST /resource_providers', 400, { name: 'x', uuid: 'x' }],
  ['a name that is taken', 'POST /resource_providers', 409, { name: 'root' }, 'placement.duplicate_name'],
  [
    'a name and a UUID that are taken',
    'POST /resource_providers',
    409,
    { name: 'root', uuid: root },
    'placement.duplicate_name',
  ],
  ['a UUID that is taken', 'POST /resource_providers', 409, { name: 'x', uuid: root }, 'placement.duplicate_name'],
  ['an unknown parent', 'POST /resource_providers', 400, { name: 'x', parent_provider_uuid: consumer }],
  ['itself as parent', 'POST /resource_providers', 400, { name: 'x', uuid: consumer, parent_provider_uuid: consumer }],
  ['a loop of parents', `PUT ${at}`, 400, { name: 'root', parent_provider_uuid: child }],
  ['a parent that is deleted', `DELETE ${at}`, 409, undefined, 'placement.resource_provider.cannot_delete_parent'],
  ['a provider that is not there', `DELETE /resource_providers/${consumer}`, 404],
  ['a class of 256 characters', `PUT /resource_classes/CUSTOM_${long(249)}`, 400],
  ['a class in small letters', 'PUT /resource_classes/CUSTOM_a', 400],
  ['a class that exists', 'POST /resource_classes', 409, { name: 'CUSTOM_USED' }],
  ['a class in use', 'DELETE /resource_classes/CUSTOM_USED', 409],
  ['a standard class', 'DELETE /resource_classes/VCPU', 400],
  ['a class that is not there', 'DELETE /resource_classes/CUSTOM_NONE', 404],
  ['a trait of 256 characters', `PUT /traits/CUSTOM_${long(249)}`, 400],
  ['a trait without its beginning', 'PUT /traits/FAST', 400],
  ['a trait in use', 'DELETE /traits/CUSTOM_USED', 409],
  ['a standard trait', 'DELETE /traits/HW_CPU_X86_VMX', 400],
  // Inventories.
  ['a total below zero', `PUT ${at}/inventories`, 400, stock({ VCPU: { total: -1 } })],
  ['a total of nothing', `PUT ${at}/inventories`, 400, stock({ VCPU: { total: 0 } })],
  ['a huge total', `PUT ${at}/inventories`, 400, stock({ VCPU: { total: 2 ** 31 } })],
  ['a fraction', `PUT ${at}/inventories`, 400, stock({ VCPU: { total: 1.5 } })],
  ['more reserved than there is', `PUT ${at}/inventories`, 400, stock({ VCPU: { total: 4, reserved: 5 } })],
  ['a huge ratio', `PUT ${at}/inventories`, 400, stock({ VCPU: { total: 4, allocation_ratio: 1e39 } })],
  ['an unknown class', `PUT ${at}/inventories`, 400, stock({ CUSTOM_NONE: { total: 1 } })],
  ['an old generation', `PUT ${at}/inventories`, 409, stock({}, 1), 'placement.concurrent_update'],
  [
    'a class that is claimed',
    `PUT ${at}/inventories`,
    409,
    { inventories: { VCPU: { total: 4 } }, resource_provider_generation: 3 },
    'placement.inventory.inuse',
  ],
  ['a claimed class, alone', `DELETE ${at}/inventories/CUSTOM_USED`, 409, undefined, 'placement.concurrent_update'],
  ['all inventories, one claimed', `DELETE ${at}/inventories`, 409, undefined, 'placement.inventory.inuse'],
  [
    'an inventory twice',
    `POST ${at}/inventories`,
    409,
    { resource_class: 'VCPU', total: 1, resource_provider_generation: 3 },
    'placement.concurrent_update',
  ],
  ['an unknown trait', `PUT ${at}/traits`, 400, { traits: ['CUSTOM_NONE'], resource_provider_generation: 3 }],
  [
    'traits of an old generation',
    `PUT ${at}/traits`,
    409,
    { traits: [], resource_provider_generation: 1 },
    'placement.concurrent_update',
  ],
  [
    'an aggregate that is no UUID',
    `PUT ${at}/aggregates`,
    400,
    { aggregates: ['ci'], resource_provider_generation: 3 },
  ],
  [
    'aggregates of an old generation',
    `PUT ${at}/aggregates`,
    409,
    { aggregates: [], resource_provider_generation: 1 },
    'placement.concurrent_update',
  ],
  // Claims.
  ['a claim beyond what there is', `PUT /allocations/${child}`, 409, claimed({ VCPU: 4 })],
  ['a claim of nothing', `PUT /allocations/${child}`, 400, claimed({ VCPU: 0 })],
  ['a claim below zero', `PUT /allocations/${child}`, 400, claimed({ VCPU: -1 })],
  ['a huge claim', `PUT /allocations/${child}`, 409, claimed({ VCPU: 2 ** 40 })],
  ['a claim of an unknown class', `PUT /allocations/${child}`, 400, claimed({ CUSTOM_NONE: 1 })],
  ['a claim on an unknown provider', `PUT /allocations/${child}`, 400, claimed({ VCPU: 1 }, null, consumer)],
  ['a claim on a provider without the class', `PUT /allocations/${child}`, 409, claimed({ VCPU: 1 }, null, other)],
  ['a consumer that is no UUID', 'PUT /allocations/me', 400, claimed({ VCPU: 1 })],
  [
    'a consumer that is there',
    `PUT /allocations/${consumer}`,
    409,
    claimed({ VCPU: 1 }),
    'placement.concurrent_update',
  ],
  ['a consumer of later', `PUT /allocations/${consumer}`, 409, claimed({ VCPU: 1 }, 7), 'placement.concurrent_update'],
  ['no allocations of many', 'POST /allocations', 400, {}],
  ['claims that are not there', `DELETE /allocations/${child}`, 404],
  // Queries.
  ['an unknown parameter', 'GET /resource_providers?colour=red', 400],
  ['a resource without an amount', 'GET /resource_providers?resources=VCPU', 400],
  ['an amount below one', 'GET /allocation_candidates?resources=VCPU:0', 400],
  ['a word for an amount', 'GET /allocation_candidates?resources=VCPU:many', 400],
  ['no resources', 'GET /allocation_candidates', 400, undefined, 'placement.query.missing_value'],
  ['a limit of nothing', 'GET /allocation_candidates?resources=VCPU:1&limit=0', 400],
  [
    'root_required twice',
    'GET /allocation_candidates?resources=VCPU:1&root_required=COMPUTE_NODE&root_required=COMPUTE_NODE',
    400,
    undefined,
    'placement.query.duplicate_key',
  ],
  [
    'a subtree of no group',
    'GET /allocation_candidates?resources=VCPU:1&same_subtree=_A',
    400,
    undefined,
    'placement.query.bad_value',
  ],
  ['an unknown trait asked for', 'GET /allocation_candidates?resources=VCPU:1&required=CUSTOM_NONE', 400],
  ['groups without a policy', 'GET /allocation_candidates?resources1=VCPU:1&resources2=VCPU:1', 400],
  ['usages of no project', 'GET /usages', 400],
  // Reshapes: of two providers, the second is not there; of two claims, the second does not fit.
  [
    'a reshape of a provider that is not there',
    'POST /reshaper',
    400,
    {
      inventories: {
        [root ?? '']: stock({ VCPU: { total: 8 } }),
        [consumer]: { inventories: {}, resource_provider_generation: 0 },
      },
      allocations: {},
    },
    'placement.resource_provider.not_found',
  ],
  [
    'a reshape of an old generation',
    'POST /reshaper',
    409,
    { inventories: { [root ?? '']: stock({ VCPU: { total: 8 } }, 1) }, allocations: {} },
    'placement.concurrent_update',
  ],
  [
    'a reshape whose claims do not fit',
    'POST /reshaper',
    409,
    {
      inventories: { [root ?? '']: stock({ VCPU: { total: 8 } }) },
      allocations: { [consumer]: claimed({ VCPU: 1, CUSTOM_USED: 1 }, 1), [randomUUID()]: claimed({ VCPU: 8 }) },
    },
  ],
];

describe('what is refused', () => {
  it.each(rows.map((row) => [row[0], row[1], row[2], row] as const))(
    '%s: %s answers %i',
    async (_, call, status, [, , , body, code]) => {
      const [method = '', path = ''] = call.split(' ');
      const answer = await ask(method, path, body === undefined ? {} : { body });
      expect(answer.status).toBe(status);
      const { errors } = answer.json as {
        errors: [{ status: number; detail: string; code: string; request_id: string }];
      };
      expect(errors[0]).toMatchObject({
        status,
        request_id: expect.stringMatching(/^req-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/),
        detail: expect.any(String),
      });
      expect(errors[0].code).toBe(code ?? undefinedCode);
    },
  );

  it('changes nothing', async () => {
    const { json } = await ask('GET', `${at}/inventories`);
    expect(json).toMatchObject({
      resource_provider_generation: 3,
      inventories: { VCPU: { total: 4, reserved: 0 }, CUSTOM_USED: { total: 1 } },
    });
    expect((await ask('GET', `/allocations/${consumer}`)).json).toMatchObject({
      allocations: { [root ?? '']: { resources: { VCPU: 1, CUSTOM_USED: 1 } } },
      consumer_generation: 1,
    });
  });
});

describe('a refusal', () => {
  it('has the request id of its header', async () => {
    const answer = await systemFetch(`${server.url}/placement/nothing`, { headers: { 'x-auth-token': 'operator' } });
    const id = answer.headers.get('x-openstack-request-id');
    expect(await answer.json()).toMatchObject({ errors: [{ request_id: id }] });
  });

  it('names classes in use in the order of all classes', async () => {
    const [uuid, by] = [randomUUID(), randomUUID()];
    await ask('POST', '/resource_providers', { body: { name: 'in-order', uuid } });
    const inventories = { DISK_GB: { total: 9 }, CUSTOM_USED: { total: 9 }, VCPU: { total: 9 } };
    await ask('PUT', `/resource_providers/${uuid}/inventories`, {
      body: { resource_provider_generation: 0, inventories },
    });
    const allocations = { [uuid]: { resources: { CUSTOM_USED: 1, DISK_GB: 1, VCPU: 1 } } };
    const owner = { project_id: 'p', user_id: 'u', consumer_generation: null, consumer_type: 'TEST' };
    await ask('PUT', `/allocations/${by}`, { body: { allocations, ...owner } });
    const { status, json } = await ask('DELETE', `/resource_providers/${uuid}/inventories`);
    expect([status, JSON.stringify(json)]).toEqual([409, expect.stringContaining("'VCPU, DISK_GB, CUSTOM_USED'")]);
    await ask('DELETE', `/allocations/${by}`);
    await ask('DELETE', `/resource_providers/${uuid}`);
  });
});

describe('a request that is no JSON', () => {
  const send = (method: string, path: string, headers: Record<string, string>, body?: string | Buffer<ArrayBuffer>) =>
    systemFetch(`${server.url}/placement${path}`, {
      ...{ method, headers: { 'x-auth-token': 'operator', 'openstack-api-version': 'placement 1.39', ...headers } },
      ...(body === undefined ? {} : { body }),
    });

  const at0 = { 'openstack-api-version': 'placement 1.0' };
  const at6 = { 'openstack-api-version': 'placement 1.6' };
  const html = { accept: 'text/html' };
  const latin1 = Buffer.from('{"name": "caf\u00e9"}', 'latin1');

  it.each([
    ['another type', 'POST', '/resource_providers', { 'content-type': 'text/plain' }, 'x', 415],
    ['malformed', 'POST', '/resource_providers', { 'content-type': 'application/json' }, '{', 400],
    ['a list', 'POST', '/resource_providers', { 'content-type': 'application/json' }, '[]', 400],
    ['no UTF-8', 'POST', '/resource_providers', { 'content-type': 'application/json' }, latin1, 400],
    ['no UTF-8 in the query', 'GET', '/resource_providers?name=%ff', {}, undefined, 400],
    ['an answer of another type', 'GET', '/resource_providers', { accept: 'text/html' }, undefined, 406],
    [
      'an answer of another type that has no body',
      'GET',
      '/traits/CUSTOM_USED',
      { accept: 'text/html' },
      undefined,
      204,
    ],
    ['of no type', 'POST', '/resource_providers', { 'content-type': '' }, '{}', 400],
    ['another method', 'DELETE', '/resource_providers', {}, undefined, 405],
    ['another path', 'GET', '/nothing', {}, undefined, 404],
    ['no type, to rename a class', 'PUT', '/resource_classes/CUSTOM_USED', at6, undefined, 415],
    ['no type, to create a class', 'PUT', '/resource_classes/CUSTOM_USED', {}, undefined, 204],
    [
      'a version that has no classes, and another type',
      'GET',
      '/resource_classes',
      { ...at0, ...html },
      undefined,
      404,
    ],
    [
      'a version that has no aggregates, and another type',
      'GET',
      `${at}/aggregates`,
      { ...at0, ...html },
      undefined,
      406,
    ],
    ['a trait, which has no body, of another type', 'GET', '/traits/CUSTOM_USED', html, undefined, 204],
  ])('%s', async (_, method, path, headers, body, status) => {
    const answer = await send(method, path, headers, body);
    expect(answer.status).toBe(status);
    if (status === 405) expect(answer.headers.get('allow')).toBe('GET, POST');
  });

  it('is told so in a page, when the client asks for one', async () => {
    const answer = await send('GET', '/no<b>thing', { accept: 'text/html' });
    expect([answer.status, answer.headers.get('content-type')]).toEqual([404, 'text/html; charset=UTF-8']);
    expect(await answer.text()).toContain('<h1>404 Not Found</h1>');
  });
});
