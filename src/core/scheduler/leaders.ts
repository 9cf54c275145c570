// Leaders: the best hosts of one shape, in order. Of all others it is known only that they come after the last of these, which is all that
// most decisions need: so a changed host costs each shape a comparison, not a place in an order of all. When too many have gone, one pass
// over the columns finds new ones. Ties go to the lower name, so that the answer does not hang on the order of hosts.

import type { Slot } from './slot.ts';
import { refused } from './verdicts.ts';

export interface Scores {
  /** 0 and more, or below 0 when the host is refused. */
  of(slot: Slot): number;
  /** Whether `a` comes before `b`, neither of them refused. */
  beats(a: Slot, b: Slot): boolean;
}

/** So many are left when a list that has grown to twice that is cut, and at least half of that wanted before it is read in order. */
const keptUsually = 64;

const fits = 1;
const listed = 2;

export class Leaders {
  /** How many hosts are not refused. */
  fitCount = 0;
  /** Best first. */
  readonly #slots: Slot[] = [];
  /** Of `#slots`, as they were when each was put in its place. */
  readonly #listedScores: number[] = [];
  readonly #scoreOf: (slot: Slot) => number;
  readonly #names: readonly string[];
  /** By slot. */
  readonly #state: Uint8Array;
  /** Hosts that are not listed do not come before this. */
  #cutScore = refused;
  #cutName = '';

  readonly #kept: number;

  /** `names` by slot, read when scores are equal. */
  constructor(capacity: number, names: readonly string[], scoreOf: (slot: Slot) => number, kept = keptUsually) {
    this.#kept = kept;
    this.#names = names;
    this.#scoreOf = scoreOf;
    this.#state = new Uint8Array(capacity);
  }

  /** Looks at all hosts below `length`. */
  build(length: number): void {
    const slots = this.#slots;
    slots.length = 0;
    this.#listedScores.length = 0;
    this.#state.fill(0);
    this.fitCount = 0;
    this.#cutScore = refused;
    for (let slot = 0; slot < length; slot++) {
      const score = this.#scoreOf(slot);
      if (score < 0) continue;
      this.fitCount += 1;
      this.#state[slot] = fits;
      if (slots.length === 2 * this.#kept) {
        if (!this.#isBeforeLast(score, slot)) continue;
        this.#drop(slots.length - 1);
      }
      this.#insert(slot, score);
    }
    if (this.fitCount > slots.length) this.#cutAtLast();
  }

  /** A host may have another score. */
  update(slot: Slot): void {
    const score = this.#scoreOf(slot);
    const state = this.#state[slot] ?? 0;
    if (state === 0 && score < 0) return;
    this.fitCount += Number(score >= 0) - (state & fits);
    if ((state & listed) !== 0) this.#drop(this.#slots.indexOf(slot));
    this.#state[slot] = score < 0 ? 0 : fits;
    if (score < 0 || !this.#isBeforeCut(score, slot)) return;
    this.#insert(slot, score);
    if (this.#slots.length <= 2 * this.#kept) return;
    while (this.#slots.length > this.#kept) this.#drop(this.#slots.length - 1);
    this.#cutAtLast();
  }

  /** The best host, or -1. `length`: of the fleet. */
  best(length: number): Slot {
    if (this.#slots.length === 0 && this.fitCount > 0) this.build(length);
    return this.#slots[0] ?? -1;
  }

  /** The best hosts in order; whether these are all that are not refused is `areAll`. */
  inOrder(length: number): readonly Slot[] {
    if (this.#slots.length < Math.min(this.#kept / 2, this.fitCount)) this.build(length);
    return this.#slots;
  }

  get areAll(): boolean {
    return this.#slots.length === this.fitCount;
  }

  #isBeforeCut(score: number, slot: Slot): boolean {
    return score > this.#cutScore || (score === this.#cutScore && (this.#names[slot] ?? '') < this.#cutName);
  }

  #isBeforeLast(score: number, slot: Slot): boolean {
    return this.#isBefore(score, slot, this.#slots.length - 1);
  }

  #isBefore(score: number, slot: Slot, at: number): boolean {
    const other = this.#listedScores[at] ?? refused;
    if (score !== other) return score > other;
    return (this.#names[slot] ?? '') < (this.#names[this.#slots[at] ?? -1] ?? '');
  }

  #cutAtLast(): void {
    const last = this.#slots.length - 1;
    this.#cutScore = this.#listedScores[last] ?? refused;
    this.#cutName = this.#names[this.#slots[last] ?? -1] ?? '';
  }

  #insert(slot: Slot, score: number): void {
    let from = 0;
    let to = this.#slots.length;
    while (from < to) {
      const middle = (from + to) >> 1;
      if (this.#isBefore(score, slot, middle)) to = middle;
      else from = middle + 1;
    }
    this.#slots.splice(from, 0, slot);
    this.#listedScores.splice(from, 0, score);
    this.#state[slot] = fits | listed;
  }

  #drop(at: number): void {
    this.#state[this.#slots[at] ?? 0] = fits;
    this.#slots.splice(at, 1);
    this.#listedScores.splice(at, 1);
  }
}
