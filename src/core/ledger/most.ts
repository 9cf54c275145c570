// Most: how much of a class could be had, in the same terms as `fit`. What it names is still asked of `fit` before anyone relies on it.

import { capacityOf } from './ledger.ts';
import type { Demand, Tree } from './tree.ts';

/** The most, up to `asked`, that one claim can get of a class now, from one provider, in whole steps; 0 when none gives any. */
export function mostOf(tree: Tree, resourceClass: string, asked: number): number {
  let most = 0;
  for (const { provider, used } of tree) {
    const inventory = provider.inventories[resourceClass];
    if (!inventory) continue;
    const free = Math.min(capacityOf(inventory) - (used.get(resourceClass) ?? 0), inventory.maxUnit, asked);
    const amount = free - (free % inventory.stepSize);
    if (amount >= inventory.minUnit) most = Math.max(most, amount);
  }
  return most;
}

/** How many of a plain demand fit on a host of one provider, where at least one does; 1 where only trying tells. */
export function copiesOf(tree: Tree, { amounts, portions }: Demand): number {
  const [root] = tree;
  if (!root || tree.length !== 1 || portions.length > 0) return 1;
  let copies = Number.POSITIVE_INFINITY;
  for (const [resourceClass, amount] of Object.entries(amounts)) {
    const inventory = root.provider.inventories[resourceClass];
    if (amount === 0 || !inventory) continue;
    copies = Math.min(copies, Math.floor((capacityOf(inventory) - (root.used.get(resourceClass) ?? 0)) / amount));
  }
  return Number.isFinite(copies) ? Math.max(1, copies) : 1;
}
