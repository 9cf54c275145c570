// Change log: which hosts changed, in order, so that each ranking can mend itself only there, and only when it is used again.

import type { Slot } from './slot.ts';

/** Whoever is further behind than this builds anew. 65,536 × 4 bytes. */
const ringLength = 1 << 16;

export class ChangeLog {
  /** How many changes there have been. */
  end = 0;
  readonly #ring = new Int32Array(ringLength);
  /** By slot: `end` after its last change. */
  #lastChange = new Float64Array(16);
  /** By slot: the visit that last came by, so that each visit comes once. */
  #visited = new Uint32Array(16);
  #visits = 0;

  /** `record`: the host's record changed, not only what is free there. */
  push(slot: Slot, record: boolean): void {
    if (slot >= this.#visited.length) this.#grow(slot);
    this.#ring[this.end % ringLength] = slot * 2 + Number(record);
    this.end += 1;
    this.#lastChange[slot] = this.end;
  }

  /** Another number after each change of the host. */
  lastChange(slot: Slot): number {
    return this.#lastChange[slot] ?? 0;
  }

  #grow(slot: Slot): void {
    this.#visited = new Uint32Array(2 * slot);
    const lastChange = new Float64Array(2 * slot);
    lastChange.set(this.#lastChange);
    this.#lastChange = lastChange;
  }

  /**
   * Each host that changed after `start`, once; of all changes, or of those of records only. False, without a visit, when the changes
   * are not known so far back.
   */
  visit(start: number, which: 'all' | 'records', visit: (slot: Slot) => void): boolean {
    if (this.end - start > ringLength) return false;
    this.#visits = (this.#visits + 1) >>> 0;
    for (let i = start; i < this.end; i++) {
      const entry = this.#ring[i % ringLength] ?? 0;
      if (which === 'records' && (entry & 1) === 0) continue;
      const slot = entry >> 1;
      if (this.#visited[slot] === this.#visits) continue;
      this.#visited[slot] = this.#visits;
      visit(slot);
    }
    return true;
  }
}
