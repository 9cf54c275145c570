// /resource_providers/{uuid}/traits and /resource_providers/{uuid}/aggregates.

import { aggregatesOf } from '../../../core/operations/placement/aggregates-of.ts';
import { providerOf } from '../../../core/operations/placement/providers.ts';
import {
  generationPassed,
  setAggregates,
  setTraits,
} from '../../../core/operations/placement/traits-and-aggregates.ts';
import type { Provider } from '../../../core/state/records.ts';
import { commit } from '../commit.ts';
import { type Exchange, form, jsonBody, type Reply, uuidOf } from '../exchange.ts';
import { generationOf, shownTraits } from '../wire/provider.ts';
import { aggregatesBody, traitsBody } from '../wire/schemas.ts';
import { modified } from './providers.ts';
import type { PlacementRoute } from './route.ts';

const traits = '/resource_providers/:uuid/traits';
const aggregates = '/resource_providers/:uuid/aggregates';

export const describingRoutes: readonly PlacementRoute[] = [
  { method: 'GET', path: traits, handle: showTraits, since: 6 },
  { method: 'PUT', path: traits, handle: putTraits, since: 6, takes: 'json' },
  { method: 'DELETE', path: traits, handle: removeTraits, since: 6 },
  { method: 'GET', path: aggregates, handle: showAggregates, since: 1, typesFirst: true },
  { method: 'PUT', path: aggregates, handle: putAggregates, since: 1, takes: 'json', typesFirst: true },
];

function showTraits(exchange: Exchange): Reply {
  const uuid = uuidOf(exchange);
  const sorry = `No resource provider with uuid ${uuid} found: No resource provider with uuid ${uuid} found`;
  return traitsReply(exchange, providerOf(exchange.snapshot, uuid, sorry));
}

function traitsReply({ version, decider }: Exchange, provider: Provider): Reply {
  return {
    status: 200,
    json: {
      traits: shownTraits(provider),
      resource_provider_generation: generationOf(decider.cache, provider),
    },
    ...modified(version, 'now'),
  };
}

async function putTraits(exchange: Exchange): Promise<Reply> {
  const uuid = uuidOf(exchange);
  const body = jsonBody<{ readonly traits: readonly string[]; readonly resource_provider_generation: number }>(
    exchange,
    traitsBody,
  );
  const asked = { uuid, traits: body.traits, generation: body.resource_provider_generation };
  await commit(exchange, (snapshot) => setTraits(snapshot, asked));
  return traitsReply(exchange, providerOf(exchange.decider.cache, uuid));
}

async function removeTraits(exchange: Exchange): Promise<Reply> {
  const asked = { uuid: uuidOf(exchange), traits: [], generation: undefined };
  await commit(exchange, (snapshot) => setTraits(snapshot, asked));
  return { status: 204 };
}

function showAggregates(exchange: Exchange): Reply {
  return shownAggregates(exchange, providerOf(exchange.snapshot, uuidOf(exchange)));
}

function shownAggregates({ version, decider }: Exchange, provider: Provider): Reply {
  const generation = generationOf(decider.cache, provider);
  return {
    status: 200,
    json: {
      aggregates: aggregatesOf(decider.cache, provider),
      ...(version >= 19 ? { resource_provider_generation: generation } : {}),
    },
    ...modified(version, 'now'),
  };
}

type AggregatesBody =
  | readonly string[]
  | { readonly aggregates: readonly string[]; readonly resource_provider_generation: number };

async function putAggregates(exchange: Exchange): Promise<Reply> {
  const uuid = uuidOf(exchange);
  providerOf(exchange.snapshot, uuid);
  const body = jsonBody<AggregatesBody>(exchange, form(exchange, aggregatesBody));
  const asked =
    'aggregates' in body
      ? { aggregates: body.aggregates, generation: body.resource_provider_generation }
      : { aggregates: body, generation: undefined };
  if (asked.generation !== undefined && asked.generation !== providerOf(exchange.snapshot, uuid).generation)
    throw generationPassed();
  await commit(exchange, (snapshot) => setAggregates(snapshot, { uuid, ...asked }));
  return shownAggregates(exchange, providerOf(exchange.decider.cache, uuid));
}
