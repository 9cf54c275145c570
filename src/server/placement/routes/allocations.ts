// /allocations, /allocations/{consumer}, /resource_providers/{uuid}/allocations and /reshaper.

import type { Amounts } from '../../../api/resources/metadata.ts';
import {
  type ConsumerClaim,
  deleteAllocations,
  setAllocations,
} from '../../../core/operations/placement/allocations.ts';
import { shownConsumer } from '../../../core/operations/placement/consumers.ts';
import { badRequest } from '../../../core/operations/placement/fault.ts';
import { providerOf } from '../../../core/operations/placement/providers.ts';
import { reshape } from '../../../core/operations/placement/reshape.ts';
import { placementIndexOf } from '../../../core/state/views/placement-index.ts';
import { commit } from '../commit.ts';
import { type Exchange, form, jsonBody, type Reply, uuidOf } from '../exchange.ts';
import { isUuidLike, normalUuid } from '../wire/json-schema.ts';
import { generationOf } from '../wire/provider.ts';
import { consumerAllocations, manyAllocations, reshaperBody } from '../wire/schemas.ts';
import { inventoriesFrom, type WireInventory } from './inventories.ts';
import { modified } from './providers.ts';
import type { PlacementRoute } from './route.ts';

const consumer = '/allocations/:consumer';

export const allocationRoutes: readonly PlacementRoute[] = [
  { method: 'GET', path: '/resource_providers/:uuid/allocations', handle: listOfProvider },
  { method: 'POST', path: '/allocations', handle: setMany, since: 13, takes: 'json' },
  { method: 'GET', path: consumer, handle: listOfConsumer },
  { method: 'PUT', path: consumer, handle: setOne, takes: 'json' },
  { method: 'DELETE', path: consumer, handle: remove },
  { method: 'POST', path: '/reshaper', handle: reshapeAll, since: 30, takes: 'json' },
];

/** A consumer's body, in whichever form its version has. */
interface WireConsumer {
  readonly allocations:
    | readonly { readonly resource_provider: { readonly uuid: string }; readonly resources: Amounts }[]
    | Readonly<Record<string, { readonly resources: Amounts }>>;
  readonly project_id?: string;
  readonly user_id?: string;
  readonly consumer_generation?: number | null;
  readonly consumer_type?: string;
}

/** What the original notes of consumers whose client names none. */
const unknownOwner = '00000000-0000-0000-0000-000000000000';

function claimFrom(id: string, wire: WireConsumer, version: number): ConsumerClaim {
  const { allocations } = wire;
  const amounts = new Map<string, Amounts>(
    isList(allocations)
      ? allocations.map(({ resource_provider: { uuid }, resources }) => [uuid, resources])
      : Object.entries(allocations).map(([uuid, { resources }]) => [uuid, resources]),
  );
  return {
    consumer: id,
    amounts,
    project: wire.project_id ?? unknownOwner,
    user: wire.user_id ?? unknownOwner,
    type: wire.consumer_type,
    generation: version >= 28 ? wire.consumer_generation : undefined,
  };
}

function isList<T>(value: readonly T[] | object): value is readonly T[] {
  return Array.isArray(value);
}

function listOfConsumer({ params, snapshot, version }: Exchange): Reply {
  const index = placementIndexOf(snapshot);
  const found = shownConsumer(snapshot, index.consumerOf(params['consumer'] ?? ''));
  const allocations = (found?.allocations ?? []).map(({ providerId, amounts }) => [
    index.uuidOf(providerId),
    { resources: wholeOf(amounts), generation: index.provider(providerId)?.generation ?? 0 },
  ]);
  return {
    status: 200,
    json: {
      allocations: Object.fromEntries(allocations),
      ...(found && version >= 12 ? { project_id: found.project, user_id: found.user } : {}),
      ...(found && version >= 28 ? { consumer_generation: found.generation } : {}),
      ...(found && version >= 38 ? { consumer_type: found.type ?? 'unknown' } : {}),
    },
    ...modified(version, found?.changedAtMs ?? 'now'),
  };
}

function listOfProvider(exchange: Exchange): Reply {
  const { snapshot, version } = exchange;
  const uuid = uuidOf(exchange);
  const sorry = `Resource provider '${uuid}' not found: No resource provider with uuid ${uuid} found`;
  const provider = providerOf(snapshot, uuid, sorry);
  const allocations: Record<string, object> = {};
  for (const { value } of snapshot.allocationsOnHost(provider.host)) {
    const amounts = value.amounts[provider.id];
    const found = amounts && Object.keys(amounts).length > 0 ? shownConsumer(snapshot, value.consumer.id) : undefined;
    if (!amounts || !found) continue;
    allocations[found.uuid] = {
      resources: wholeOf(amounts),
      ...(version >= 28 ? { consumer_generation: found.generation } : {}),
    };
  }
  return {
    status: 200,
    json: { allocations, resource_provider_generation: generationOf(snapshot, provider) },
    ...modified(version, 'now'),
  };
}

/** Of a CPU an instance may hold a part; the API knows whole numbers. */
function wholeOf(amounts: Amounts): Amounts {
  return Object.fromEntries(Object.entries(amounts).map(([name, amount]) => [name, Math.ceil(amount)]));
}

async function setOne(exchange: Exchange): Promise<Reply> {
  const { params, version } = exchange;
  const { consumer: given = '' } = params;
  if (!isUuidLike(given)) throw badRequest(`Malformed consumer_uuid: ${given}`);
  const id = normalUuid(given);
  const claim = claimFrom(id, jsonBody<WireConsumer>(exchange, form(exchange, consumerAllocations)), version);
  const wording = { unknownClass: `Unable to allocate inventory for consumer ${id}: ` };
  await commit(exchange, (snapshot, ctx) => setAllocations(snapshot, [claim], wording, ctx));
  return { status: 204 };
}

async function setMany(exchange: Exchange): Promise<Reply> {
  const body = jsonBody<Readonly<Record<string, WireConsumer>>>(exchange, form(exchange, manyAllocations));
  const claims = Object.entries(body).map(([id, wire]) => claimFrom(id, wire, exchange.version));
  const wording = { unknownClass: 'Unable to allocate inventory ' };
  await commit(exchange, (snapshot, ctx) => setAllocations(snapshot, claims, wording, ctx));
  return { status: 204 };
}

async function remove(exchange: Exchange): Promise<Reply> {
  await commit(exchange, (snapshot) => deleteAllocations(snapshot, exchange.params['consumer'] ?? ''));
  return { status: 204 };
}

interface ReshaperBody {
  readonly inventories: Readonly<
    Record<
      string,
      {
        readonly resource_provider_generation: number;
        readonly inventories: Readonly<Record<string, WireInventory>>;
      }
    >
  >;
  readonly allocations: Readonly<Record<string, WireConsumer>>;
}

async function reshapeAll(exchange: Exchange): Promise<Reply> {
  const body = jsonBody<ReshaperBody>(exchange, form(exchange, reshaperBody));
  const providers = Object.entries(body.inventories).map(([uuid, each]) => ({
    uuid,
    generation: each.resource_provider_generation,
    inventories: inventoriesFrom(each.inventories),
  }));
  const claims = Object.entries(body.allocations).map(([id, wire]) => claimFrom(id, wire, exchange.version));
  await commit(exchange, (snapshot, ctx) => reshape(snapshot, { providers, claims }, ctx));
  return { status: 204 };
}
