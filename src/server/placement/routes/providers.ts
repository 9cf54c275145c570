// /resource_providers.

import { badRequest } from '../../../core/operations/placement/fault.ts';
import {
  createProvider,
  deleteProvider,
  providerOf,
  updateProvider,
} from '../../../core/operations/placement/providers.ts';
import { commit } from '../commit.ts';
import { checkQuery, type Exchange, form, jsonBody, type Reply, uuidOf } from '../exchange.ts';
import { listProviders } from '../list-providers.ts';
import { since } from '../versions.ts';
import { normalUuid, randomUuid } from '../wire/json-schema.ts';
import { changedOf, shownProvider } from '../wire/provider.ts';
import { newProvider, providerQuery, providerUpdate } from '../wire/schemas.ts';
import type { PlacementRoute } from './route.ts';

export const providerRoutes: readonly PlacementRoute[] = [
  { method: 'GET', path: '/resource_providers', handle: list },
  { method: 'POST', path: '/resource_providers', handle: create, takes: 'json' },
  { method: 'GET', path: '/resource_providers/:uuid', handle: show },
  { method: 'DELETE', path: '/resource_providers/:uuid', handle: remove },
  { method: 'PUT', path: '/resource_providers/:uuid', handle: update, takes: 'json' },
];

function list(exchange: Exchange): Reply {
  checkQuery(exchange, form(exchange, providerQuery));
  const { snapshot, version, request } = exchange;
  const found = listProviders(exchange);
  const changes = found.map((provider) => provider.outside?.changedAtMs ?? exchange.ctx.nowMs);
  return {
    status: 200,
    json: { resource_providers: found.map((each) => shownProvider(snapshot, each, { version, mount: request.mount })) },
    ...modified(version, changes.length === 0 ? 'now' : Math.max(...changes)),
  };
}

function show(exchange: Exchange): Reply {
  const { snapshot, version, request } = exchange;
  const provider = providerOf(snapshot, uuidOf(exchange));
  return {
    status: 200,
    json: shownProvider(snapshot, provider, { version, mount: request.mount }),
    ...modified(version, changedOf(provider)),
  };
}

interface ProviderBody {
  readonly name: string;
  readonly uuid?: string;
  readonly parent_provider_uuid?: string | null;
}

async function create(exchange: Exchange): Promise<Reply> {
  const { version, request, decider } = exchange;
  const {
    name,
    uuid: given,
    parent_provider_uuid: parent = null,
  } = jsonBody<ProviderBody>(exchange, form(exchange, newProvider));
  const uuid = given ? normalUuid(given) : randomUuid(exchange.ctx.prng);
  const { id } = await commit(exchange, (snapshot, ctx) => createProvider(snapshot, { uuid, name, parent }, ctx));
  const location = `${request.mount}/resource_providers/${uuid}`;
  if (version < 20) return { status: 201, location };
  const provider = decider.cache.get('provider', `providers/${id}`)?.value;
  if (!provider) throw badRequest(`resource provider ${uuid} was deleted at once`);
  return {
    status: 200,
    location,
    json: shownProvider(decider.cache, provider, { version, mount: request.mount }),
    modifiedMs: changedOf(provider),
  };
}

async function update(exchange: Exchange): Promise<Reply> {
  const { version, request, decider, snapshot } = exchange;
  const uuid = uuidOf(exchange);
  providerOf(snapshot, uuid);
  const body = jsonBody<ProviderBody>(exchange, form(exchange, providerUpdate));
  const asked = { uuid, name: body.name, parent: body.parent_provider_uuid, mayMove: version >= 37 };
  await commit(exchange, (now, ctx) => updateProvider(now, asked, ctx));
  const provider = providerOf(decider.cache, uuid);
  return {
    status: 200,
    json: shownProvider(decider.cache, provider, { version, mount: request.mount }),
    ...modified(version, changedOf(provider)),
  };
}

async function remove(exchange: Exchange): Promise<Reply> {
  await commit(exchange, (snapshot) => deleteProvider(snapshot, uuidOf(exchange)));
  return { status: 204 };
}

/** Since 1.15 an answer says when what it shows has changed. */
export function modified(version: number, modifiedMs: number | 'now' | 'unknown'): Pick<Reply, 'modifiedMs'> {
  return version >= since.lastModified ? { modifiedMs } : {};
}
