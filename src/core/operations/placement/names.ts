// Names: which resource classes and traits there are: the standard ones, those made through the Placement API, and those that
// hosts have.

import { standardClasses } from '../../../api/resources/standard-classes.ts';
import { standardTraits } from '../../ledger/standard-traits.ts';
import { keys } from '../../state/keys.ts';
import type { Snapshot } from '../../state/snapshot.ts';
import { placementIndexOf } from '../../state/views/placement-index.ts';
import { badRequest, conflict, notFound, type PlacementFault } from './fault.ts';
import { Draft } from './draft.ts';
import type { Context } from '../../state/context.ts';
import type { Plan } from '../../state/plan.ts';

type Of = 'class' | 'trait';

const standard: Readonly<Record<Of, ReadonlySet<string>>> = {
  class: new Set(standardClasses),
  trait: new Set(standardTraits),
};

export function isKnownName(snapshot: Snapshot, of: Of, name: string): boolean {
  return standard[of].has(name) || isMade(snapshot, of, name) || usersOf(snapshot, of, name).size > 0;
}

/** The standard ones first. */
export function knownNames(snapshot: Snapshot, of: Of): string[] {
  const names = new Set(standard[of]);
  for (const { value } of snapshot.list('placementName')) if (value.of === of) names.add(value.name);
  const index = placementIndexOf(snapshot);
  for (const name of of === 'class' ? index.classes() : index.traits()) names.add(name);
  return [...names];
}

export function unknownClass(name: string): PlacementFault {
  return notFound(`No such resource class ${name}.`);
}

/** Ids of the providers that have it. */
export function usersOf(snapshot: Snapshot, of: Of, name: string): ReadonlySet<string> {
  const index = placementIndexOf(snapshot);
  return of === 'class' ? index.withClass(name) : index.withTrait(name);
}

function isMade(snapshot: Snapshot, of: Of, name: string): boolean {
  return snapshot.get('placementName', keys.placementName(of, name)) !== undefined;
}

/** Creates it, unless it is there. */
export function ensureName(snapshot: Snapshot, of: Of, name: string, ctx: Context): { plan: Plan; created: boolean } {
  const draft = new Draft(snapshot);
  const created = !isKnownName(snapshot, of, name);
  if (created) draft.put({ kind: 'placementName', of, name, createdAtMs: ctx.nowMs });
  return { plan: draft.plan(), created };
}

export function createClass(snapshot: Snapshot, name: string, ctx: Context): { plan: Plan } {
  const made = ensureName(snapshot, 'class', name, ctx);
  if (!made.created) throw conflict(`Conflicting resource class already exists: ${name}`);
  return made;
}

/** As versions 1.2 to 1.6 have it. */
export function renameClass(
  snapshot: Snapshot,
  { from, to }: { readonly from: string; readonly to: string },
  ctx: Context,
): { plan: Plan } {
  if (!isKnownName(snapshot, 'class', from)) throw unknownClass(from);
  if (standard.class.has(from)) throw badRequest(`Cannot update standard resource class ${from}`);
  if (from !== to && isKnownName(snapshot, 'class', to)) throw conflict(`Resource class already exists: ${to}`);
  const draft = new Draft(snapshot);
  if (from === to) return { plan: draft.plan() };
  for (const id of usersOf(snapshot, 'class', from)) {
    const provider = draft.provider(id);
    if (!provider.outside) throw conflict(`Resource class ${from} is in use by hosts of Berth and keeps its name`);
    if (snapshot.usedBy(id).get(from)) throw conflict(`Resource class ${from} is in use by allocations`);
    const { [from]: renamed, ...inventories } = provider.inventories;
    draft.setProvider(id, { inventories: renamed ? { ...inventories, [to]: renamed } : inventories });
  }
  draft.remove('placementName', keys.placementName('class', from));
  draft.put({ kind: 'placementName', of: 'class', name: to, createdAtMs: ctx.nowMs });
  return { plan: draft.plan() };
}

export function deleteClass(snapshot: Snapshot, name: string): { plan: Plan } {
  if (!isKnownName(snapshot, 'class', name)) throw unknownClass(name);
  const sorry = 'Error in delete resource class: ';
  if (standard.class.has(name)) throw badRequest(`${sorry}Cannot delete standard resource class ${name}.`);
  if (usersOf(snapshot, 'class', name).size > 0)
    throw conflict(`${sorry}Cannot delete resource class ${name}. Class is in use in inventory.`);
  const draft = new Draft(snapshot);
  draft.remove('placementName', keys.placementName('class', name));
  return { plan: draft.plan() };
}

export function deleteTrait(snapshot: Snapshot, name: string): { plan: Plan } {
  if (!isKnownName(snapshot, 'trait', name)) throw notFound(`No such trait(s): ${name}.`);
  if (standard.trait.has(name)) throw badRequest(`Cannot delete standard trait ${name}.`);
  if (usersOf(snapshot, 'trait', name).size > 0) throw conflict(`The trait ${name} is in use by a resource provider.`);
  const draft = new Draft(snapshot);
  draft.remove('placementName', keys.placementName('trait', name));
  return { plan: draft.plan() };
}
