// Inventories of providers, written through the Placement API: those of outside providers as they are told, and those of hosts as statements
// of their specs (host-inventories.ts).

import type { Context } from '../../state/context.ts';
import { keys } from '../../state/keys.ts';
import type { Plan } from '../../state/plan.ts';
import type { Inventory, Provider } from '../../state/records.ts';
import type { Snapshot } from '../../state/snapshot.ts';
import { nameOf, placementIndexOf } from '../../state/views/placement-index.ts';
import { Draft } from './draft.ts';
import { badRequest, conflict, notFound, ours, placementCodes } from './fault.ts';
import { stateInventories } from './host-inventories.ts';
import { isKnownName, knownNames, unknownClass } from './names.ts';
import { providerOf } from './providers.ts';

export type Inventories = Readonly<Record<string, Inventory>>;

/** `reservedMax`: from version 1.26 all of it may be reserved. */
interface Rule {
  readonly mayReserveAll: boolean;
}

const generationConflict = () => conflict('resource provider generation conflict', placementCodes.concurrentUpdate);

export function setInventories(
  snapshot: Snapshot,
  asked: { readonly uuid: string; readonly generation: number; readonly inventories: Inventories } & Rule,
  ctx: Context,
): { plan: Plan; id: string } {
  const { uuid, generation, inventories } = asked;
  const provider = providerOf(snapshot, uuid);
  if (generation !== provider.generation) throw generationConflict();
  assertCapacities(asked, 'Unable to update inventory for resource provider', inventories);
  const unknown = Object.keys(inventories).find((name) => !isKnownName(snapshot, 'class', name));
  if (unknown !== undefined)
    throw badRequest(
      `Unknown resource class in inventory for resource provider ${uuid}: ${unknownClass(unknown).message}`,
    );
  if (!provider.outside) return { plan: stateInventories(snapshot, provider, inventories, ctx), id: provider.id };
  const inUse = removedInUse(snapshot, provider, inventories);
  if (inUse !== undefined) throw conflict(`update conflict: ${inUseText(inUse, uuid)}`, placementCodes.inventoryInUse);
  return { plan: written(snapshot, provider, inventories, ctx), id: provider.id };
}

export function deleteInventories(snapshot: Snapshot, uuid: string, ctx: Context): { plan: Plan } {
  const provider = providerOf(snapshot, uuid);
  assertOutside(snapshot, provider);
  const inUse = removedInUse(snapshot, provider, {});
  if (inUse !== undefined) throw conflict(inUseText(inUse, uuid), placementCodes.inventoryInUse);
  return { plan: written(snapshot, provider, {}, ctx) };
}

interface OneInventory extends Rule {
  readonly uuid: string;
  readonly resourceClass: string;
  readonly inventory: Inventory;
}

export function addInventory(snapshot: Snapshot, asked: OneInventory, ctx: Context): { plan: Plan; id: string } {
  const { uuid, resourceClass, inventory } = asked;
  const provider = providerOf(snapshot, uuid);
  const sorry = 'Unable to create inventory for resource provider';
  assertCapacities(asked, sorry, { [resourceClass]: inventory });
  if (!isKnownName(snapshot, 'class', resourceClass))
    throw badRequest(`${sorry} ${uuid}: ${unknownClass(resourceClass).message}`);
  if (Object.hasOwn(provider.inventories, resourceClass))
    throw conflict(
      `Update conflict: resource provider ${uuid} has an inventory of class ${resourceClass}`,
      placementCodes.concurrentUpdate,
    );
  return {
    plan: written(snapshot, provider, { ...provider.inventories, [resourceClass]: inventory }, ctx),
    id: provider.id,
  };
}

export function updateInventory(
  snapshot: Snapshot,
  asked: OneInventory & { readonly generation: number },
  ctx: Context,
): { plan: Plan; id: string } {
  const { uuid, resourceClass, inventory } = asked;
  const provider = providerOf(snapshot, uuid);
  if (asked.generation !== provider.generation) throw generationConflict();
  assertCapacities(asked, 'Unable to update inventory for resource provider', { [resourceClass]: inventory });
  if (!isKnownName(snapshot, 'class', resourceClass)) throw unknownClass(resourceClass);
  if (!Object.hasOwn(provider.inventories, resourceClass))
    throw badRequest(
      `No inventory record with resource class for resource provider ${uuid}: No inventory of class ${resourceClass} found.`,
    );
  return {
    plan: written(snapshot, provider, { ...provider.inventories, [resourceClass]: inventory }, ctx),
    id: provider.id,
  };
}

export function deleteInventory(
  snapshot: Snapshot,
  { uuid, resourceClass }: { readonly uuid: string; readonly resourceClass: string },
  ctx: Context,
): { plan: Plan } {
  const provider = providerOf(snapshot, uuid);
  const missing = `No inventory of class ${resourceClass} found for delete`;
  if (!isKnownName(snapshot, 'class', resourceClass))
    throw notFound(`${missing}: ${unknownClass(resourceClass).message}`);
  const { [resourceClass]: removed, ...rest } = provider.inventories;
  if (snapshot.usedBy(provider.id).get(resourceClass))
    throw conflict(
      `Unable to delete inventory of class ${resourceClass}: ${inUseText(resourceClass, uuid)}`,
      placementCodes.concurrentUpdate,
    );
  if (!removed) throw notFound(`${missing}: ${missing}`);
  return { plan: written(snapshot, provider, rest, ctx) };
}

export function inUseText(resourceClasses: string, uuid: string): string {
  return `Inventory for '${resourceClasses}' on resource provider '${uuid}' in use.`;
}

/** Throws `Conflict` for a host of ours. */
export function assertOutside(snapshot: Snapshot, provider: Provider): void {
  if (provider.outside) return;
  throw ours(
    `the inventory of resource provider ${placementIndexOf(snapshot).uuidOf(provider.id)} (${nameOf(provider)})`,
    `its agent measures it; state another with "berth host edit ${provider.host}"`,
  );
}

function assertCapacities(
  { uuid, mayReserveAll }: Rule & { readonly uuid: string },
  sorry: string,
  all: Inventories,
): void {
  for (const [resourceClass, inventory] of Object.entries(all)) {
    const capacity = Math.trunc((inventory.total - inventory.reserved) * inventory.allocationRatio);
    if (mayReserveAll ? capacity >= 0 : capacity > 0) continue;
    const what = mayReserveAll ? 'greater than total' : 'greater than or equal to total';
    throw badRequest(
      `${sorry} ${uuid}: Invalid inventory for '${resourceClass}' on resource provider '${uuid}'. The reserved value is ${what}.`,
    );
  }
}

/** The classes that would go although some of them is held, in the order of all classes. */
function removedInUse(snapshot: Snapshot, provider: Provider, next: Inventories): string | undefined {
  const used = snapshot.usedBy(provider.id);
  const held = Object.keys(provider.inventories).filter((name) => !Object.hasOwn(next, name) && used.get(name));
  if (held.length < 2) return held[0];
  const order = knownNames(snapshot, 'class');
  return held.sort((a, b) => order.indexOf(a) - order.indexOf(b)).join(', ');
}

function written(snapshot: Snapshot, provider: Provider, inventories: Inventories, ctx: Context): Plan {
  if (!provider.outside) return stateInventories(snapshot, provider, inventories, ctx);
  const draft = new Draft(snapshot);
  writeInventories(draft, provider.id, inventories);
  return draft.plan();
}

/** A class that is new here is rewritten as well, so that it cannot be deleted meanwhile. */
export function writeInventories(draft: Draft, id: string, inventories: Inventories): void {
  const before = draft.provider(id).inventories;
  for (const name of Object.keys(inventories))
    if (!Object.hasOwn(before, name)) draft.touch('placementName', keys.placementName('class', name));
  draft.setProvider(id, { inventories });
  draft.countOn(id);
}
