// Column: one resource class of all hosts, in units of that class. The numbers of one host lie together, because most
// readers need all of them.

import type { Slot } from './slot.ts';

export class Column {
  readonly resourceClass: string;
  #cells: Float64Array;

  constructor(resourceClass: string, length: number) {
    this.resourceClass = resourceClass;
    this.#cells = new Float64Array(cellsPerHost * length);
  }

  /** Total capacity over all providers of the host. */
  capacity(slot: Slot): number {
    return this.#cells[cellsPerHost * slot] ?? 0;
  }

  used(slot: Slot): number {
    return this.#cells[cellsPerHost * slot + 1] ?? 0;
  }

  /** The most that one claim can get: from the provider with the most free, at most its max unit. */
  most(slot: Slot): number {
    return this.#cells[cellsPerHost * slot + 2] ?? 0;
  }

  clear(slot: Slot): void {
    const at = cellsPerHost * slot;
    this.#cells[at] = 0;
    this.#cells[at + 1] = 0;
    this.#cells[at + 2] = 0;
  }

  /** Adds a provider of the host that can give at most `most` to one claim. */
  add(slot: Slot, { capacity, used, most }: { capacity: number; used: number; most: number }): void {
    const cells = this.#cells;
    const at = cellsPerHost * slot;
    cells[at] = (cells[at] ?? 0) + capacity;
    cells[at + 1] = (cells[at + 1] ?? 0) + used;
    if (most > (cells[at + 2] ?? 0)) cells[at + 2] = most;
  }

  grow(length: number): void {
    const cells = new Float64Array(cellsPerHost * length);
    cells.set(this.#cells);
    this.#cells = cells;
  }
}

/** Three are used; four keep a host's cells within one cache line. */
const cellsPerHost = 4;
