// Many clients at once. Whatever the order in which they come, the ledger holds, and all who lose are told so in a way they can act on.

import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { overUse } from '../../core/ledger/ledger.ts';
import { verify } from '../../core/verify/verify.ts';
import { startTestServer } from '../testing.ts';
import { type Ask, placementClient, type PlacementReply } from './testing.ts';

let server: Awaited<ReturnType<typeof startTestServer>>;
let ask: Ask;
let provider: string;

beforeAll(async () => {
  server = await startTestServer();
  ask = placementClient(server.url);
});
afterAll(() => server.close());
beforeEach(async () => {
  provider = await newProvider({ VCPU: { total: 5 }, DISK_GB: { total: 100 } });
});

async function newProvider(inventories: object, parent: string | null = null): Promise<string> {
  const uuid = randomUUID();
  await ask('POST', '/resource_providers', { body: { name: uuid, uuid, parent_provider_uuid: parent } });
  const body = { inventories, resource_provider_generation: 0 };
  await ask('PUT', `/resource_providers/${uuid}/inventories`, { body });
  return uuid;
}

const claim = (resources: object, generation: number | null, of = provider) => ({
  ...{ allocations: { [of]: { resources } }, consumer_generation: generation, consumer_type: 'RACER' },
  ...{ project_id: 'races', user_id: 'u' },
});
const many = <T>(count: number, act: (at: number) => Promise<T>) =>
  Promise.all(Array.from({ length: count }, (_, at) => act(at)));
const statuses = (answers: readonly PlacementReply[]) => answers.map(({ status }) => status).sort();
const refusals = (answers: readonly PlacementReply[]) =>
  new Set(
    answers
      .filter(({ status }) => status === 409)
      .map(({ json }) => (json as { errors: [{ code: string }] }).errors[0].code),
  );
const generationOf = async (of: string) =>
  ((await ask('GET', `/resource_providers/${of}`)).json as { generation: number }).generation;
const usedOf = async (of: string) => (await ask('GET', `/resource_providers/${of}/usages`)).json;

function assertLedgerHolds(): void {
  const { cache } = server.plane.decider;
  expect(overUse(cache)).toEqual([]);
  expect([...verify(cache)].filter((fault) => fault !== undefined)).toEqual([]);
}

it('gives each unit to one consumer, and tells the others that there is no room', async () => {
  const answers = await many(12, () => ask('PUT', `/allocations/${randomUUID()}`, { body: claim({ VCPU: 1 }, null) }));
  expect(statuses(answers)).toEqual([...Array<number>(5).fill(204), ...Array<number>(7).fill(409)]);
  expect(refusals(answers)).toEqual(new Set(['placement.undefined_code']));
  expect(await usedOf(provider)).toMatchObject({ usages: { VCPU: 5 } });
});

it('makes a consumer once, and tells the others to read it again', async () => {
  const consumer = randomUUID();
  const answers = await many(6, (at) =>
    ask('PUT', `/allocations/${consumer}`, { body: claim({ DISK_GB: at + 1 }, null) }),
  );
  expect(statuses(answers)).toEqual([204, ...Array<number>(5).fill(409)]);
  expect(refusals(answers)).toEqual(new Set(['placement.concurrent_update']));
  const won = answers.findIndex(({ status }) => status === 204) + 1;
  expect((await ask('GET', `/allocations/${consumer}`)).json).toMatchObject({
    ...{ allocations: { [provider]: { resources: { DISK_GB: won } } }, consumer_generation: 1 },
  });
});

it('replaces inventories for one of those who read the same generation', async () => {
  const answers = await many(6, (at) => {
    const body = { inventories: { VCPU: { total: at + 1 } }, resource_provider_generation: 1 };
    return ask('PUT', `/resource_providers/${provider}/inventories`, { body });
  });
  expect(statuses(answers)).toEqual([200, ...Array<number>(5).fill(409)]);
  expect(refusals(answers)).toEqual(new Set(['placement.concurrent_update']));
});

it('deletes a provider, or lets it be claimed, and never both', async () => {
  const [deleted, ...claimed] = await Promise.all([
    ask('DELETE', `/resource_providers/${provider}`),
    ...Array.from({ length: 4 }, () => ask('PUT', `/allocations/${randomUUID()}`, { body: claim({ VCPU: 1 }, null) })),
  ]);
  const gone = deleted?.status === 204;
  expect(new Set(statuses(claimed))).toEqual(new Set([gone ? 400 : 204]));
  assertLedgerHolds();
});

it('moves a class to a child while others claim it', async () => {
  const child = await newProvider({}, provider);
  const holder = randomUUID();
  await ask('PUT', `/allocations/${holder}`, { body: claim({ VCPU: 2 }, null) });
  const moved = {
    inventories: {
      [provider]: {
        resource_provider_generation: await generationOf(provider),
        inventories: { DISK_GB: { total: 100 } },
      },
      [child]: { resource_provider_generation: await generationOf(child), inventories: { VCPU: { total: 5 } } },
    },
    allocations: { [holder]: claim({ VCPU: 2 }, 1, child) },
  };
  const [reshaped, ...claims] = await Promise.all([
    ask('POST', '/reshaper', { body: moved }),
    ...Array.from({ length: 4 }, () => ask('PUT', `/allocations/${randomUUID()}`, { body: claim({ VCPU: 1 }, null) })),
  ]);
  const granted = claims.filter(({ status }) => status === 204).length;
  // The reshape read the provider before the claims: it holds only if it comes first, and then the class is gone for the claims.
  if (reshaped?.status === 204) expect([granted, await usedOf(child)]).toMatchObject([0, { usages: { VCPU: 2 } }]);
  else expect([reshaped?.status, await usedOf(provider)]).toMatchObject([409, { usages: { VCPU: 2 + granted } }]);
  assertLedgerHolds();
});
