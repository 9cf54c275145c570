// Change log: which hosts changed, in order, so that a ranking updates only those hosts, and only when it is used
// again.

import type { Slot } from './slot.ts';

/** A reader that is further behind than this rebuilds. 65,536 × 4 bytes; a power of two. */
const ringLength = 1 << 16;
const ringMask = ringLength - 1;

export class ChangeLog {
  /** Number of changes so far. */
  end = 0;
  /** The result of `collect`; the next call overwrites it. */
  readonly changed = new Int32Array(ringLength);
  readonly #ring = new Int32Array(ringLength);
  /** By slot: the value of `end` after the slot's last change. */
  #lastChange = new Float64Array(16);
  /** By slot: the number of the last collection that saw it, so that each collection lists it once. */
  #collected = new Uint32Array(16);
  #collections = 0;

  push(slot: Slot): void {
    if (slot >= this.#collected.length) this.#grow(slot);
    this.#ring[this.end & ringMask] = slot;
    this.end += 1;
    this.#lastChange[slot] = this.end;
  }

  /** A number that differs after each change of the host. */
  lastChange(slot: Slot): number {
    return this.#lastChange[slot] ?? 0;
  }

  #grow(slot: Slot): void {
    this.#collected = new Uint32Array(2 * slot);
    const lastChange = new Float64Array(2 * slot);
    lastChange.set(this.#lastChange);
    this.#lastChange = lastChange;
  }

  /**
   * Number of hosts that changed after `start`, each listed once in `changed`; -1 when the log does not reach back that
   * far.
   */
  collect(start: number): number {
    const { end, changed } = this;
    if (end - start > ringLength) return -1;
    const ring = this.#ring;
    const collected = this.#collected;
    const collection = (this.#collections + 1) >>> 0;
    this.#collections = collection;
    let count = 0;
    for (let i = start; i < end; i++) {
      const slot = ring[i & ringMask] ?? 0;
      if (collected[slot] === collection) continue;
      collected[slot] = collection;
      changed[count++] = slot;
    }
    return count;
  }
}
