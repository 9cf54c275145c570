// Tree: the providers of one host and how a request is shared out among them. Which provider gives what is decided here and nowhere
// else. Semantics are those of OpenStack Placement's allocation candidates: each plain class comes whole from one provider of the tree;
// a portion's classes come together from one, and its copies from different ones (`group_policy=isolate`).

import type { Amounts } from '../../api/resources/metadata.ts';
import type { Allocation, Provider } from '../state/records.ts';
import { capacityOf, fit, type Shortfall } from './ledger.ts';

export interface ProviderRoom {
  readonly provider: Provider;
  readonly used: ReadonlyMap<string, number>;
}

/** The root first, then its children by id. */
export type Tree = readonly ProviderRoom[];

/** Amounts that one provider must give together, `count` times over, each from another provider. */
export interface Portion {
  readonly amounts: Amounts;
  readonly count: number;
  /** The provider bears at least one of these traits; empty: any provider will do. */
  readonly traitsAnyOf: readonly string[];
}

export interface Demand {
  readonly amounts: Amounts;
  readonly portions: readonly Portion[];
}

export type Assignment =
  | { readonly fits: true; readonly held: Allocation['amounts'] }
  | { readonly fits: false; readonly shortfalls: readonly Shortfall[] };

/**
 * Who gives what, tightest provider first, so that large ones stay whole; or every class that cannot be given. Portions are taken in
 * order, so a later one may find its provider taken: exact for portions of different classes, which is what devices and cells are.
 */
export function assign(tree: Tree, { amounts, portions }: Demand): Assignment {
  const [root] = tree;
  if (portions.length === 0 && root && isRootAlone(tree, amounts)) {
    const verdict = fit(root.provider, root.used, amounts);
    if (verdict.fits) return { fits: true, held: { [root.provider.id]: amounts } };
  }
  const held: Record<string, Record<string, number>> = {};
  const shortfalls: Shortfall[] = [];
  for (const portion of portions) {
    const takers = tightest(tree, held, portion.amounts, portion.traitsAnyOf);
    if (takers.length < portion.count) {
      shortfalls.push(...portionShortfalls(portion, takers.length));
      continue;
    }
    for (const { provider } of takers.slice(0, portion.count)) hold(held, provider.id, portion.amounts);
  }
  for (const [resourceClass, amount] of Object.entries(amounts)) {
    if (amount === 0) continue;
    const ask = { [resourceClass]: amount };
    const [taker] = tightest(tree, held, ask, []);
    if (taker) hold(held, taker.provider.id, ask);
    else shortfalls.push(closest(tree, held, resourceClass, amount));
  }
  return shortfalls.length === 0 ? { fits: true, held } : { fits: false, shortfalls };
}

/** How many providers could give the portion, counted no further than it needs. */
export function countTakers(tree: Tree, { amounts, count, traitsAnyOf }: Portion): number {
  let found = 0;
  for (const { provider, used } of tree) {
    if (found === count) break;
    if (!hasAll(provider, amounts)) continue;
    if (traitsAnyOf.length > 0 && !traitsAnyOf.some((trait) => provider.traits.includes(trait))) continue;
    if (fit(provider, used, amounts).fits) found += 1;
  }
  return found;
}

/** Whether no child has any of these classes, so that there is nothing to choose. */
function isRootAlone(tree: Tree, amounts: Amounts): boolean {
  for (let i = 1; i < tree.length; i++) {
    const inventories = tree[i]?.provider.inventories ?? {};
    for (const resourceClass in amounts) if (inventories[resourceClass] !== undefined) return false;
  }
  return true;
}

/** The providers that can give `amounts` besides what is held already, the one with the least left over first. */
function tightest(tree: Tree, held: Held, amounts: Amounts, traitsAnyOf: readonly string[]): ProviderRoom[] {
  const found: { readonly room: ProviderRoom; readonly left: number }[] = [];
  for (const room of tree) {
    if (!hasAll(room.provider, amounts)) continue;
    if (traitsAnyOf.length > 0 && !traitsAnyOf.some((trait) => room.provider.traits.includes(trait))) continue;
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

function hasAll({ inventories }: Provider, amounts: Amounts): boolean {
  for (const resourceClass in amounts) if (inventories[resourceClass] === undefined) return false;
  return true;
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
  const mine = (held[providerId] ??= {});
  for (const [resourceClass, amount] of Object.entries(amounts))
    mine[resourceClass] = (mine[resourceClass] ?? 0) + amount;
}

/** Why no provider gives the class, by the one that comes nearest. */
function closest(tree: Tree, held: Held, resourceClass: string, asked: number): Shortfall {
  let best: Shortfall | undefined;
  for (const room of tree) {
    const verdict = fit(room.provider, withHeld(room, held), { [resourceClass]: asked });
    if (!verdict.fits && verdict.refusal !== 'NoInventory' && (!best || verdict.free > best.free)) best = verdict;
  }
  return best ?? { fits: false, refusal: 'NoInventory', resourceClass, asked, free: 0 };
}

function portionShortfalls({ amounts, count }: Portion, found: number): Shortfall[] {
  return Object.entries(amounts).map(([resourceClass, each]) => ({
    fits: false,
    refusal: 'TooFew',
    resourceClass,
    asked: count,
    free: found,
    each,
  }));
}
