// Reshape: inventories of several providers and allocations of several consumers, in one Plan.

import type { Context } from '../../state/context.ts';
import type { Plan } from '../../state/plan.ts';
import type { Snapshot } from '../../state/snapshot.ts';
import { placementIndexOf } from '../../state/views/placement-index.ts';
import { type ConsumerClaim, draftClaims } from './allocations.ts';
import { Draft } from './draft.ts';
import { badRequest, conflict, placementCodes } from './fault.ts';
import { assertOutside, type Inventories, inUseText, writeInventories } from './inventories.ts';
import { isKnownName, unknownClass } from './names.ts';

export interface Reshaped {
  readonly uuid: string;
  readonly generation: number;
  readonly inventories: Inventories;
}

export function reshape(
  snapshot: Snapshot,
  { providers, claims }: { readonly providers: readonly Reshaped[]; readonly claims: readonly ConsumerClaim[] },
  ctx: Context,
): { plan: Plan } {
  const index = placementIndexOf(snapshot);
  const wanted = providers.map(({ uuid, generation, inventories }) => {
    const id = index.idOf(uuid);
    const provider = id === undefined ? undefined : index.provider(id);
    if (!provider)
      throw badRequest(
        `Resource provider ${uuid} in inventories not found: No resource provider with uuid ${uuid} found`,
        placementCodes.providerNotFound,
      );
    if (generation !== provider.generation)
      throw conflict(
        `resource provider generation conflict for provider ${uuid}: actual: ${provider.generation}, given: ${generation}`,
        placementCodes.concurrentUpdate,
      );
    assertOutside(snapshot, provider);
    return { uuid, id: provider.id, inventories };
  });
  const draft = new Draft(snapshot);
  for (const { id, inventories } of wanted) {
    const unknown = Object.keys(inventories).find((name) => !isKnownName(snapshot, 'class', name));
    if (unknown !== undefined) throw badRequest(`malformed reshaper data: ${unknownClass(unknown).message}`);
    if (Object.keys(inventories).length === 0) continue;
    // Both the old and the new classes, until the allocations are where they belong.
    writeInventories(draft, id, { ...draft.provider(id).inventories, ...inventories });
  }
  draftClaims(draft, claims, { unknownClass: 'malformed reshaper data: ' }, ctx);
  const held = heldAfter(draft, claims);
  for (const { id, uuid, inventories } of wanted) {
    const lost = Object.keys(draft.provider(id).inventories).filter(
      (name) => !Object.hasOwn(inventories, name) && (held(id, name) ?? 0) > 0,
    );
    if (lost.length > 0)
      throw conflict(`update conflict: ${inUseText(lost.join(', '), uuid)}`, placementCodes.inventoryInUse);
    writeInventories(draft, id, inventories);
  }
  return { plan: draft.plan() };
}

/** What is held of a class of a provider once the claims are made. */
function heldAfter(
  { snapshot }: Draft,
  claims: readonly ConsumerClaim[],
): (id: string, resourceClass: string) => number {
  const index = placementIndexOf(snapshot);
  const change = new Map<string, number>();
  const add = (id: string, name: string, amount: number): void => {
    change.set(`${id} ${name}`, (change.get(`${id} ${name}`) ?? 0) + amount);
  };
  for (const { consumer, amounts } of claims) {
    for (const { value } of snapshot.allocationsOfConsumer(consumer))
      for (const [id, held] of Object.entries(value.amounts))
        for (const [name, amount] of Object.entries(held)) add(id, name, -amount);
    for (const [uuid, held] of amounts)
      for (const [name, amount] of Object.entries(held)) add(index.idOf(uuid) ?? uuid, name, amount);
  }
  return (id, name) => (snapshot.usedBy(id).get(name) ?? 0) + (change.get(`${id} ${name}`) ?? 0);
}
