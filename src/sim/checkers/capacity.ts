// Invariant 1: no provider is allocated beyond (total − reserved) × ratio after any commit. When an operator shrinks an inventory below
// its use, no later commit may make the excess larger. Counted here from allocations; core's own sums are under test.
// A host that registers twice within one commit may have been larger in between, which no event shows: a lying agent, then the true one.

import type { Inventory, Provider } from '../../core/state/records.ts';
import type { Commit, RecordEvent } from '../history.ts';
import type { Checker, Facts } from './checker.ts';

export const capacityChecker = (facts: Facts): Checker => new CapacityChecker(facts);

type Amounts = Readonly<Record<string, Readonly<Record<string, number>>>>;

class CapacityChecker implements Checker {
  readonly invariant = 1;
  readonly overRestore = 'after';
  readonly #facts: Facts;
  /** By provider id, then resource class. */
  readonly #used = new Map<string, Map<string, number>>();
  /** By provider id and resource class. */
  readonly #excess = new Map<string, number>();

  constructor(facts: Facts) {
    this.#facts = facts;
  }

  onRestored(): void {
    this.#used.clear();
    this.#excess.clear();
    for (const { amounts } of this.#facts.state.list('allocation')) this.#add(amounts, +1);
    for (const [id, sums] of this.#used)
      for (const [resourceClass, sum] of sums)
        this.#excess.set(`${id} ${resourceClass}`, this.#excessOf(id, resourceClass, sum));
  }

  onCommit({ events }: Commit): string | undefined {
    const touched = new Set<string>();
    const shrunk = new Set<string>();
    const twice = new Set(events.filter(isOfSeveralSessions).map(({ after }) => nameOf(after)));
    for (const event of events) this.#note(event, { touched, shrunk });
    for (const id of touched) {
      const host = this.#facts.state.get('provider', `providers/${id}`)?.host;
      const fault = this.#faultOf(id, shrunk.has(id) || twice.has(host));
      if (fault !== undefined) return fault;
    }
    return undefined;
  }

  recount(): string | undefined {
    const found = new Map<string, number>();
    for (const { amounts } of this.#facts.state.list('allocation'))
      for (const [providerId, byClass] of Object.entries(amounts))
        for (const [resourceClass, amount] of Object.entries(byClass))
          found.set(`${providerId} ${resourceClass}`, (found.get(`${providerId} ${resourceClass}`) ?? 0) + amount);
    for (const [providerId, sums] of this.#used) {
      for (const [resourceClass, sum] of sums) {
        const name = `${providerId} ${resourceClass}`;
        if (sum !== (found.get(name) ?? 0)) return `counted ${sum} ${name}, there are ${found.get(name) ?? 0}`;
        found.delete(name);
      }
    }
    const [missed] = found.keys();
    return missed === undefined ? undefined : `never counted ${missed}`;
  }

  #note({ before, after }: RecordEvent, { touched, shrunk }: { touched: Set<string>; shrunk: Set<string> }): void {
    if (before?.kind === 'allocation') {
      this.#add(before.amounts, -1);
      for (const id of Object.keys(before.amounts)) touched.add(id);
    }
    if (after?.kind === 'allocation') {
      this.#add(after.amounts, +1);
      for (const id of Object.keys(after.amounts)) touched.add(id);
    }
    const provider = after?.kind === 'provider' ? after : before?.kind === 'provider' ? before : undefined;
    if (provider === undefined) return;
    touched.add(provider.id);
    if (!sameInventories(before, after)) shrunk.add(provider.id);
  }

  #faultOf(id: string, shrunk: boolean): string | undefined {
    const provider = this.#facts.state.get('provider', `providers/${id}`);
    for (const [resourceClass, sum] of this.#used.get(id) ?? []) {
      const name = `${id} ${resourceClass}`;
      const over = this.#excessOf(id, resourceClass, sum);
      const before = this.#excess.get(name) ?? 0;
      this.#excess.set(name, over);
      if (over > before && !shrunk)
        return `provider ${id} of host ${provider?.host ?? '(gone)'} holds ${sum} ${resourceClass} of ${sum - over}`;
    }
    return undefined;
  }

  #add(amounts: Amounts, sign: 1 | -1): void {
    for (const [providerId, byClass] of Object.entries(amounts)) {
      const sums = this.#used.get(providerId) ?? new Map<string, number>();
      this.#used.set(providerId, sums);
      for (const [resourceClass, amount] of Object.entries(byClass))
        sums.set(resourceClass, (sums.get(resourceClass) ?? 0) + sign * amount);
    }
  }

  /** What the provider holds more than it has, of one class. */
  #excessOf(id: string, resourceClass: string, sum: number): number {
    const provider = this.#facts.state.get('provider', `providers/${id}`);
    return Math.max(0, sum - capacityOf(provider?.inventories[resourceClass]));
  }
}

/** Whether sessions of a host began and ended within the commit. */
function isOfSeveralSessions({ before, after }: RecordEvent): boolean {
  return before?.kind === 'host' && after?.kind === 'host' && after.status.epoch > before.status.epoch + 1;
}

function nameOf(record: RecordEvent['after']): string | undefined {
  return record?.kind === 'host' ? record.metadata.name : undefined;
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
