// Most: how much of a class could be had, in the same terms as `fit`. What it names is still asked of `fit` before anyone relies on it.

import { capacityOf } from './ledger.ts';
import type { Tree } from './tree.ts';

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
