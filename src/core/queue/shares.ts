// Shares: how much of the fleet each project holds, by allocations. For order and guarantees; free amounts are the
// ledger's subject.

import { equalJson } from '../../base/equal-json.ts';
import type { Amounts } from '../../api/resources/metadata.ts';
import { fleetOf } from '../scheduler/fleet.ts';
import { keys } from '../state/keys.ts';
import type { Allocation } from '../state/records.ts';
import { defineView, type RecordChange, type Snapshot, type View } from '../state/snapshot.ts';

export const sharesOf = defineView((snapshot) => new Shares(snapshot));

export class Shares implements View {
  readonly #snapshot: Snapshot;
  readonly #usedBy = new Map<string, Map<string, number>>();
  /** By project; recomputed when the project's allocations or the fleet change. */
  readonly #shares = new Map<string, number>();
  #capacities: ReadonlyMap<string, number> | undefined;

  constructor(snapshot: Snapshot) {
    this.#snapshot = snapshot;
    fleetOf(snapshot); // sees every change before this view
    for (const { value } of snapshot.list('allocation')) this.#add(value, 1);
  }

  apply({ kind, before, after, onlyHeld }: RecordChange): void {
    switch (kind) {
      case 'allocation':
        if (onlyHeld) return;
        if (before?.kind === 'allocation') this.#add(before, -1);
        if (after?.kind === 'allocation') this.#add(after, 1);
        return;
      case 'project':
        this.#shares.clear();
        return;
      case 'host':
        if (before && after) return;
        return this.#measureAgain();
      case 'provider':
        if (
          before?.kind === 'provider' &&
          after?.kind === 'provider' &&
          equalJson(before.inventories, after.inventories)
        )
          return;
        return this.#measureAgain();
      default:
    }
  }

  /** The project's allocated amount of each class. */
  used(project: string): ReadonlyMap<string, number> {
    return this.#usedBy.get(project) ?? nothing;
  }

  /** The largest share of any class of the fleet, divided by the project's weight. */
  of(project: string): number {
    let share = this.#shares.get(project);
    if (share === undefined) this.#shares.set(project, (share = this.with(project, noAmounts)));
    return share;
  }

  /** The share as if the project held `more` in addition. */
  with(project: string, more: Amounts): number {
    const used = this.used(project);
    let dominant = 0;
    for (const [resourceClass, capacity] of this.#capacityByClass()) {
      const held = (used.get(resourceClass) ?? 0) + (more[resourceClass] ?? 0);
      if (held > 0 && capacity > 0) dominant = Math.max(dominant, held / capacity);
    }
    return dominant / (this.#snapshot.get('project', keys.project(project))?.value.spec.weight ?? 1);
  }

  #measureAgain(): void {
    this.#capacities = undefined;
    this.#shares.clear();
  }

  #capacityByClass(): ReadonlyMap<string, number> {
    if (this.#capacities) return this.#capacities;
    const sums = new Map<string, number>();
    const fleet = fleetOf(this.#snapshot);
    for (const column of fleet.columns()) {
      let sum = 0;
      for (let slot = 0; slot < fleet.length; slot++) sum += column.capacity(slot);
      sums.set(column.resourceClass, sum);
    }
    return (this.#capacities = sums);
  }

  #add({ consumer: { kind, project }, amounts }: Allocation, sign: 1 | -1): void {
    if (kind === 'outside') return; // its project is one of another system
    this.#shares.delete(project);
    let used = this.#usedBy.get(project);
    if (!used) this.#usedBy.set(project, (used = new Map()));
    for (const id in amounts) {
      const held = amounts[id] ?? {};
      for (const resourceClass in held) {
        const sum = (used.get(resourceClass) ?? 0) + sign * (held[resourceClass] ?? 0);
        if (sum === 0) used.delete(resourceClass);
        else used.set(resourceClass, sum);
      }
    }
    if (used.size === 0) this.#usedBy.delete(project);
  }
}

const nothing: ReadonlyMap<string, number> = new Map();
const noAmounts: Amounts = {};
