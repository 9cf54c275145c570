// Most: how much of a class is available, in the terms of `fit`. `fit` still checks the result before a claim.

import { capacityOf } from './ledger.ts';
import { type Demand, isRootAlone, type Tree } from './tree.ts';

/** The most, up to `asked`, that one provider can give to one claim now, in whole steps; 0 when none can give any. */
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

/**
 * How many copies of a plain demand the root can give, when it can give at least one and no child has any of the
 * classes; 1 when only a trial can tell.
 */
export function copiesOf(tree: Tree, { amounts, portions }: Demand): number {
  const [root] = tree;
  if (!root || portions.length > 0 || !isRootAlone(tree, amounts)) return 1;
  let copies = Number.POSITIVE_INFINITY;
  for (const [resourceClass, amount] of Object.entries(amounts)) {
    const inventory = root.provider.inventories[resourceClass];
    if (amount === 0 || !inventory) continue;
    copies = Math.min(copies, Math.floor((capacityOf(inventory) - (root.used.get(resourceClass) ?? 0)) / amount));
  }
  return Number.isFinite(copies) ? Math.max(1, copies) : 1;
}
