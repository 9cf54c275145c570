// Invariant 1: no provider is allocated beyond (total − reserved) × ratio after any commit. When an operator shrinks an inventory below
// its use, no later commit may make the excess larger. Counted anew from allocations; core's own sums are not trusted.

import type { Inventory, Provider } from '../../core/state/records.ts';
import type { Checker, Facts } from './checker.ts';

export function capacityChecker({ state }: Facts): Checker {
  /** By provider id, then resource class. */
  const used = new Map<string, Map<string, number>>();
  const excess = new Map<string, number>();

  const add = (amounts: Readonly<Record<string, Readonly<Record<string, number>>>>, sign: 1 | -1): void => {
    for (const [providerId, byClass] of Object.entries(amounts)) {
      const sums = used.get(providerId) ?? new Map<string, number>();
      used.set(providerId, sums);
      for (const [resourceClass, amount] of Object.entries(byClass))
        sums.set(resourceClass, (sums.get(resourceClass) ?? 0) + sign * amount);
    }
  };

  /** What the provider holds more than it has, of one class. */
  const excessOf = (id: string, resourceClass: string, sum: number): number =>
    Math.max(0, sum - capacityOf(state.get('provider', `providers/${id}`)?.inventories[resourceClass]));

  return {
    invariant: 1,
    overRestore: 'after',
    onRestored() {
      used.clear();
      excess.clear();
      for (const { amounts } of state.list('allocation')) add(amounts, +1);
      for (const [id, sums] of used)
        for (const [resourceClass, sum] of sums) excess.set(`${id} ${resourceClass}`, excessOf(id, resourceClass, sum));
    },
    onCommit({ events }) {
      const touched = new Set<string>();
      const shrunk = new Set<string>();
      for (const { before, after } of events) {
        if (before?.kind === 'allocation') {
          add(before.amounts, -1);
          for (const id of Object.keys(before.amounts)) touched.add(id);
        }
        if (after?.kind === 'allocation') {
          add(after.amounts, +1);
          for (const id of Object.keys(after.amounts)) touched.add(id);
        }
        const provider = after?.kind === 'provider' ? after : before?.kind === 'provider' ? before : undefined;
        if (provider === undefined) continue;
        touched.add(provider.id);
        if (!sameInventories(before, after)) shrunk.add(provider.id);
      }
      for (const id of touched) {
        const provider = state.get('provider', `providers/${id}`);
        for (const [resourceClass, sum] of used.get(id) ?? []) {
          const name = `${id} ${resourceClass}`;
          const over = excessOf(id, resourceClass, sum);
          const before = excess.get(name) ?? 0;
          excess.set(name, over);
          if (over > before && !shrunk.has(id))
            return `provider ${id} of host ${provider?.host ?? '(gone)'} holds ${sum} ${resourceClass} of ${sum - over}`;
        }
      }
      return undefined;
    },
    recount() {
      const found = new Map<string, number>();
      for (const { amounts } of state.list('allocation'))
        for (const [providerId, byClass] of Object.entries(amounts))
          for (const [resourceClass, amount] of Object.entries(byClass))
            found.set(`${providerId} ${resourceClass}`, (found.get(`${providerId} ${resourceClass}`) ?? 0) + amount);
      for (const [providerId, sums] of used) {
        for (const [resourceClass, sum] of sums) {
          const name = `${providerId} ${resourceClass}`;
          if (sum !== (found.get(name) ?? 0)) return `counted ${sum} ${name}, there are ${found.get(name) ?? 0}`;
          found.delete(name);
        }
      }
      const [missed] = found.keys();
      return missed === undefined ? undefined : `never counted ${missed}`;
    },
  };
}

/** Placement's arithmetic, written a second time on purpose. */
function capacityOf(inventory: Inventory | undefined): number {
  if (inventory === undefined) return 0;
  return Math.max(0, Math.floor((inventory.total - inventory.reserved) * inventory.allocationRatio));
}

function sameInventories(before: unknown, after: unknown): boolean {
  return JSON.stringify(inventoriesOf(before)) === JSON.stringify(inventoriesOf(after));
}

function inventoriesOf(record: unknown): Provider['inventories'] | undefined {
  return (record as Provider | null)?.inventories; // only called with providers or null
}
