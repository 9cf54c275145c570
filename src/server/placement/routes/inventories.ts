// /resource_providers/{uuid}/inventories.

import { notFound } from '../../../core/operations/placement/fault.ts';
import {
  addInventory,
  deleteInventories,
  deleteInventory,
  type Inventories,
  setInventories,
  updateInventory,
} from '../../../core/operations/placement/inventories.ts';
import { providerOf } from '../../../core/operations/placement/providers.ts';
import type { Inventory, Provider } from '../../../core/state/records.ts';
import { commit } from '../commit.ts';
import { type Exchange, jsonBody, type Reply, uuidOf } from '../exchange.ts';
import { generationOf } from '../wire/provider.ts';
import { allInventories, newInventory, oneInventory } from '../wire/schemas.ts';
import { modified } from './providers.ts';
import type { PlacementRoute } from './route.ts';

const all = '/resource_providers/:uuid/inventories';
const one = `${all}/:resourceClass`;

export const inventoryRoutes: readonly PlacementRoute[] = [
  { method: 'GET', path: all, handle: list },
  { method: 'POST', path: all, handle: create, takes: 'json' },
  { method: 'PUT', path: all, handle: replace, takes: 'json' },
  { method: 'DELETE', path: all, handle: removeAll, since: 5, before: 405 },
  { method: 'GET', path: one, handle: show },
  { method: 'PUT', path: one, handle: update, takes: 'json' },
  { method: 'DELETE', path: one, handle: remove },
];

/** An inventory as the wire has it. */
export interface WireInventory {
  readonly total: number;
  readonly reserved?: number;
  readonly min_unit?: number;
  readonly max_unit?: number;
  readonly step_size?: number;
  readonly allocation_ratio?: number;
}

export function inventoryFrom(wire: WireInventory): Inventory {
  return {
    total: wire.total,
    reserved: wire.reserved ?? 0,
    minUnit: wire.min_unit ?? 1,
    maxUnit: wire.max_unit ?? 2_147_483_647,
    stepSize: wire.step_size ?? 1,
    allocationRatio: wire.allocation_ratio ?? 1,
  };
}

export function inventoriesFrom(wire: Readonly<Record<string, WireInventory>>): Inventories {
  return Object.fromEntries(Object.entries(wire).map(([name, each]) => [name, inventoryFrom(each)]));
}

function shown(inventory: Inventory): object {
  return {
    total: inventory.total,
    reserved: inventory.reserved,
    min_unit: inventory.minUnit,
    max_unit: inventory.maxUnit,
    step_size: inventory.stepSize,
    allocation_ratio: inventory.allocationRatio,
  };
}

function list(exchange: Exchange): Reply {
  const uuid = uuidOf(exchange);
  const sorry = `No resource provider with uuid ${uuid} found : No resource provider with uuid ${uuid} found`;
  return shownAll(exchange, providerOf(exchange.snapshot, uuid, sorry));
}

function shownAll({ version, decider }: Exchange, provider: Provider): Reply {
  return {
    status: 200,
    json: {
      resource_provider_generation: generationOf(decider.cache, provider),
      inventories: Object.fromEntries(Object.entries(provider.inventories).map(([name, each]) => [name, shown(each)])),
    },
    ...modified(version, Object.keys(provider.inventories).length === 0 ? 'unknown' : 'now'),
  };
}

function shownOne({ version, decider }: Exchange, provider: Provider, inventory: Inventory, status = 200): Reply {
  const generation = generationOf(decider.cache, provider);
  return {
    status,
    json: { ...shown(inventory), ...(generation === 0 ? {} : { resource_provider_generation: generation }) },
    ...modified(version, 'now'),
  };
}

function show(exchange: Exchange): Reply {
  const uuid = uuidOf(exchange);
  const { resourceClass = '' } = exchange.params;
  const sorry = `No resource provider with uuid ${uuid} found : No resource provider with uuid ${uuid} found`;
  const provider = providerOf(exchange.snapshot, uuid, sorry);
  const inventory = Object.hasOwn(provider.inventories, resourceClass)
    ? provider.inventories[resourceClass]
    : undefined;
  if (!inventory) throw notFound(`No inventory of class ${resourceClass} for ${uuid}`);
  return shownOne(exchange, provider, inventory);
}

async function create(exchange: Exchange): Promise<Reply> {
  const { snapshot, version, request, decider } = exchange;
  const uuid = uuidOf(exchange);
  providerOf(snapshot, uuid);
  const { resource_class: resourceClass, ...wire } = jsonBody<WireInventory & { readonly resource_class: string }>(
    exchange,
    newInventory,
  );
  const inventory = inventoryFrom(wire);
  const asked = { uuid, resourceClass, inventory, mayReserveAll: version >= 26 };
  await commit(exchange, (now, ctx) => addInventory(now, asked, ctx));
  const reply = shownOne(exchange, providerOf(decider.cache, uuid), inventory, 201);
  return { ...reply, location: `${request.mount}/resource_providers/${uuid}/inventories/${resourceClass}` };
}

async function replace(exchange: Exchange): Promise<Reply> {
  const { snapshot, version, decider } = exchange;
  const uuid = uuidOf(exchange);
  providerOf(snapshot, uuid);
  const body = jsonBody<{
    readonly resource_provider_generation: number;
    readonly inventories: Readonly<Record<string, WireInventory>>;
  }>(exchange, allInventories);
  const inventories = inventoriesFrom(body.inventories);
  const generation = body.resource_provider_generation;
  await commit(exchange, (now, ctx) =>
    setInventories(now, { uuid, generation, inventories, mayReserveAll: version >= 26 }, ctx),
  );
  return shownAll(exchange, providerOf(decider.cache, uuid));
}

async function update(exchange: Exchange): Promise<Reply> {
  const { snapshot, version, decider, params } = exchange;
  const uuid = uuidOf(exchange);
  const { resourceClass = '' } = params;
  providerOf(snapshot, uuid);
  const wire = jsonBody<WireInventory & { readonly resource_provider_generation: number }>(exchange, oneInventory);
  const inventory = inventoryFrom(wire);
  const generation = wire.resource_provider_generation;
  const asked = { uuid, resourceClass, inventory, generation, mayReserveAll: version >= 26 };
  await commit(exchange, (now, ctx) => updateInventory(now, asked, ctx));
  return shownOne(exchange, providerOf(decider.cache, uuid), inventory);
}

async function removeAll(exchange: Exchange): Promise<Reply> {
  await commit(exchange, (now, ctx) => deleteInventories(now, uuidOf(exchange), ctx));
  return { status: 204 };
}

async function remove(exchange: Exchange): Promise<Reply> {
  const asked = { uuid: uuidOf(exchange), resourceClass: exchange.params['resourceClass'] ?? '' };
  await commit(exchange, (now, ctx) => deleteInventory(now, asked, ctx));
  return { status: 204 };
}
