// Tree: the providers of one host, and how a request is divided among them. Only this file decides which provider gives
// what. Semantics are those of OpenStack Placement's allocation candidates: each plain class comes whole from one
// provider of the tree; the classes of a portion come together from one provider, and its copies from different ones
// (`group_policy=isolate`).

import type { TraitRules } from '../../api/resources/host-rules.ts';
import type { Amounts } from '../../api/resources/metadata.ts';
import { heldOfOne } from '../state/held-of-one.ts';
import type { Allocation, Provider } from '../state/records.ts';
import { capacityOf, fit, type Shortfall } from './ledger.ts';
import { aggregatesIn } from './pool-aggregate.ts';
import { SubtreeRule } from './subtree-rule.ts';
import { traitFault } from './traits.ts';

export interface ProviderRoom {
  readonly provider: Provider;
  readonly used: ReadonlyMap<string, number>;
  /** Of its host: an aggregate of all its providers. */
  readonly pool?: string | undefined;
}

/** The root first, then its children by id. */
export type Tree = readonly ProviderRoom[];

/** Amounts that one provider must give together, `count` times, each from another provider. */
export interface Portion {
  readonly amounts: Amounts;
  readonly count: number;
  /** The provider has at least one of these traits; empty: any provider. */
  readonly traitsAnyOf: readonly string[];
  /** Further requirements on the provider's traits. */
  readonly traits?: TraitRules;
  /** The provider is in one aggregate of each list. */
  readonly memberOf?: readonly (readonly string[])[];
  readonly notMemberOf?: readonly string[];
  /** No other such portion gets the same provider. */
  readonly apart?: true;
  /** Its suffix in a resource query. */
  readonly group?: string;
}

export interface Demand {
  readonly amounts: Amounts;
  readonly portions: readonly Portion[];
  /** Lists of suffixes: of each, the provider of one portion is the same as, or above, those of the others. */
  readonly sameSubtree?: readonly (readonly string[])[];
}

export type Assignment =
  | { readonly fits: true; readonly held: Allocation['amounts'] }
  | { readonly fits: false; readonly shortfalls: readonly Shortfall[] };

/**
 * The amounts by provider, the tightest provider first, so that large ones stay whole; or every class that does not
 * fit. Portions are assigned in order. When they compete for a class and that fails, other divisions are searched.
 */
export function assign(tree: Tree, demand: Demand): Assignment {
  const { amounts, portions } = demand;
  const [root] = tree;
  if (portions.length === 0 && root && isRootAlone(tree, amounts)) {
    const verdict = fit(root.provider, root.used, amounts);
    if (verdict.fits) return { fits: true, held: heldOfOne(root.provider.id, amounts) };
  }
  const inOrder = assignInOrder(tree, demand);
  if (demand.sameSubtree === undefined && (inOrder.fits || !compete(demand))) return inOrder;
  const held = search(tree, demand);
  if (held) return { fits: true, held };
  return inOrder.fits ? { fits: false, shortfalls: subtreeShortfalls(demand) } : inOrder;
}

/** The total of the demand, portions included. */
export function wholeOf({ amounts, portions }: Demand): Amounts {
  if (portions.length === 0) return amounts;
  const whole: Record<string, number> = { ...amounts };
  for (const { amounts: each, count } of portions) {
    for (const resourceClass in each)
      whole[resourceClass] = (whole[resourceClass] ?? 0) + count * (each[resourceClass] ?? 0);
  }
  return whole;
}

function assignInOrder(tree: Tree, { amounts, portions }: Demand): Assignment {
  const held: Record<string, Record<string, number>> = {};
  const shortfalls: Shortfall[] = [];
  const apart = new Set<string>();
  for (const portion of portions) {
    const takers = tightest(tree, held, portion).filter(({ provider }) => !portion.apart || !apart.has(provider.id));
    if (takers.length < portion.count) {
      shortfalls.push(...portionShortfalls(portion, takers.length));
      continue;
    }
    for (const { provider } of takers.slice(0, portion.count)) {
      hold(held, provider.id, portion.amounts);
      if (portion.apart) apart.add(provider.id);
    }
  }
  const [root] = tree;
  // Mostly these come from the root alone.
  if (root && isRootAlone(tree, amounts) && fit(root.provider, withHeld(root, held), amounts).fits)
    hold(held, root.provider.id, amounts);
  else
    for (const [resourceClass, amount] of Object.entries(amounts)) {
      if (amount === 0) continue;
      const ask = { [resourceClass]: amount };
      const [taker] = tightest(tree, held, { amounts: ask, traitsAnyOf: [] });
      if (taker) hold(held, taker.provider.id, ask);
      else shortfalls.push(closest(tree, held, resourceClass, amount));
    }
  return shortfalls.length === 0 ? { fits: true, held } : { fits: false, shortfalls };
}

/** Whether one part of a demand can take what another needs, so that checking each alone is not enough. */
export function compete({ amounts, portions, sameSubtree }: Demand): boolean {
  if (sameSubtree !== undefined) return true;
  const seen = new Set<string>(portions.length > 0 ? Object.keys(amounts) : []);
  for (const portion of portions) {
    if (portion.apart && portions.length > 1) return true;
    for (const resourceClass in portion.amounts) {
      if (seen.has(resourceClass)) return true;
      seen.add(resourceClass);
    }
  }
  return false;
}

/** Providers tried in all; a demand that needs more counts as not fitting. */
const triesMax = 4096;

/** Depth first over all divisions, the tightest first. */
function search(tree: Tree, { amounts, portions, sameSubtree = [] }: Demand): Held | null {
  const wants: { readonly portion: Portion; readonly copy: number }[] = portions.flatMap((portion) =>
    Array.from({ length: portion.count }, (_, copy) => ({ portion, copy })),
  );
  for (const [resourceClass, amount] of Object.entries(amounts)) {
    if (amount > 0)
      wants.push({ portion: { amounts: { [resourceClass]: amount }, count: 1, traitsAnyOf: [] }, copy: 0 });
  }
  const takenBy = new Map<Portion, string[]>();
  const apart = new Set<string>();
  const subtrees = sameSubtree.map((suffixes) => subtreeRule(tree, portions, suffixes));
  let tries = 0;
  const place = (index: number, held: Held): Held | null => {
    const want = wants[index];
    if (!want) return held;
    const { portion, copy } = want;
    const mine = takenBy.get(portion) ?? [];
    const last = mine.at(copy - 1);
    for (const { provider } of tightest(tree, held, portion)) {
      if (++tries > triesMax) return null;
      // Copies are equal: taken by ascending id, so that no set of providers is tried twice.
      if (copy > 0 && last !== undefined && provider.id <= last) continue;
      if (portion.apart && apart.has(provider.id)) continue;
      const more: Record<string, Record<string, number>> = {};
      for (const [id, each] of Object.entries(held)) more[id] = { ...each };
      hold(more, provider.id, portion.amounts);
      takenBy.set(portion, [...mine, provider.id]);
      if (portion.apart) apart.add(provider.id);
      const found = subtrees.every((rule) => rule.canHold(takenBy)) ? place(index + 1, more) : null;
      if (found) return found;
      takenBy.set(portion, mine);
      if (portion.apart) apart.delete(provider.id);
    }
    return null;
  };
  return place(0, {});
}

function subtreeRule(tree: Tree, portions: readonly Portion[], suffixes: readonly string[]): SubtreeRule {
  const members = portions
    .filter(({ group }) => group !== undefined && suffixes.includes(group))
    .map((portion) => ({
      portion,
      options: new Set(tree.filter((room) => mayGive(room, portion)).map(({ provider }) => provider.id)),
    }));
  return new SubtreeRule(members, new Map(tree.map(({ provider }) => [provider.id, provider.parent])));
}

/** Number of providers that could give the portion, counted up to the number needed. */
export function countTakers(tree: Tree, portion: Portion): number {
  let found = 0;
  for (const room of tree) {
    const { provider, used } = room;
    if (found === portion.count) break;
    if (mayGive(room, portion) && fit(provider, used, portion.amounts).fits) found += 1;
  }
  return found;
}

/** Whether no child has any of these classes, so that only the root can give them. */
export function isRootAlone(tree: Tree, amounts: Amounts): boolean {
  for (let i = 1; i < tree.length; i++) {
    const inventories = tree[i]?.provider.inventories ?? {};
    for (const resourceClass in amounts) if (inventories[resourceClass] !== undefined) return false;
  }
  return true;
}

/** The providers that can give `amounts` in addition to what is held, the one with the least left first. */
function tightest(tree: Tree, held: Held, wanted: Wanted): ProviderRoom[] {
  const { amounts } = wanted;
  const found: { readonly room: ProviderRoom; readonly left: number }[] = [];
  for (const room of tree) {
    if (!mayGive(room, wanted)) continue;
    const used = withHeld(room, held);
    if (!fit(room.provider, used, amounts).fits) continue;
    let left = 0;
    for (const resourceClass in amounts) {
      const inventory = room.provider.inventories[resourceClass];
      if (inventory) left += (capacityOf(inventory) - (used.get(resourceClass) ?? 0)) / capacityOf(inventory);
    }
    found.push({ room, left });
  }
  if (found.length > 1) found.sort((a, b) => a.left - b.left || (a.room.provider.id < b.room.provider.id ? -1 : 1));
  return found.map(({ room }) => room);
}

type Wanted = Pick<Portion, 'amounts' | 'traitsAnyOf' | 'traits' | 'memberOf' | 'notMemberOf'>;

/** Whether the provider is of the wanted kind, regardless of what is free. */
function mayGive({ provider, pool }: ProviderRoom, wanted: Wanted): boolean {
  const { amounts, traitsAnyOf, traits, memberOf, notMemberOf } = wanted;
  const { inventories, traits: borne } = provider;
  for (const resourceClass in amounts) if (inventories[resourceClass] === undefined) return false;
  if (traitsAnyOf.length > 0 && !traitsAnyOf.some((trait) => borne.includes(trait))) return false;
  if (traits !== undefined && traitFault(traits, borne) !== null) return false;
  if (memberOf === undefined && notMemberOf === undefined) return true;
  const all = aggregatesIn(pool, provider.aggregates);
  if (notMemberOf?.some((uuid) => all.includes(uuid))) return false;
  return memberOf === undefined || memberOf.every((any) => any.some((uuid) => all.includes(uuid)));
}

type Held = Readonly<Record<string, Readonly<Record<string, number>>>>;

function withHeld({ provider, used }: ProviderRoom, held: Held): ReadonlyMap<string, number> {
  const more = held[provider.id];
  if (!more) return used;
  const all = new Map(used);
  for (const [resourceClass, amount] of Object.entries(more))
    all.set(resourceClass, (all.get(resourceClass) ?? 0) + amount);
  return all;
}

function hold(held: Record<string, Record<string, number>>, providerId: string, amounts: Amounts): void {
  for (const resourceClass in amounts) {
    const amount = amounts[resourceClass] ?? 0;
    if (amount === 0) continue;
    const mine = (held[providerId] ??= {});
    mine[resourceClass] = (mine[resourceClass] ?? 0) + amount;
  }
}

/** Why no provider gives the class, from the one that comes closest. */
function closest(tree: Tree, held: Held, resourceClass: string, asked: number): Shortfall {
  let best: Shortfall | undefined;
  for (const room of tree) {
    const verdict = fit(room.provider, withHeld(room, held), { [resourceClass]: asked });
    if (!verdict.fits && verdict.refusal !== 'NoInventory' && (!best || verdict.free > best.free)) best = verdict;
  }
  return best ?? { fits: false, refusal: 'NoInventory', resourceClass, asked, free: 0 };
}

function portionShortfalls({ amounts, count, group }: Portion, found: number): Shortfall[] {
  const classes = Object.entries(amounts);
  if (classes.length === 0) return [{ ...none, refusal: 'NoProvider', ...(group === undefined ? {} : { group }) }];
  return classes.map(([resourceClass, each]) => ({
    fits: false,
    refusal: 'TooFew',
    resourceClass,
    asked: count,
    free: found,
    each,
  }));
}

/** Each portion has its provider, but never in one subtree. */
function subtreeShortfalls({ sameSubtree = [] }: Demand): Shortfall[] {
  return sameSubtree.map((suffixes) => ({ ...none, refusal: 'Apart', group: suffixes.join(', ') }));
}

const none = { fits: false, resourceClass: '', asked: 0, free: 0 } as const;
