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
  /** Best first, `#count` of them. */
  readonly #slots: Int32Array;
  /** Of `#slots`, as they were when each was put in its place. */
  readonly #listedScores: Float64Array;
  #count = 0;
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
    this.#slots = new Int32Array(2 * kept + 1);
    this.#listedScores = new Float64Array(2 * kept + 1);
  }

  /** Looks at all hosts below `length`. */
  build(length: number): void {
    this.#count = 0;
    this.#state.fill(0);
    this.fitCount = 0;
    this.#cutScore = refused;
    for (let slot = 0; slot < length; slot++) {
      const score = this.#scoreOf(slot);
      if (score < 0) continue;
      this.fitCount += 1;
      this.#state[slot] = fits;
      if (this.#count === 2 * this.#kept) {
        if (!this.#isBefore(score, slot, this.#count - 1)) continue;
        this.#drop(this.#count - 1);
      }
      this.#insert(slot, score);
    }
    if (this.fitCount > this.#count) this.#cutAtLast();
  }

  /** A host has this score now. Mostly it is none of the best, before as after. */
  update(slot: Slot, score: number): void {
    const state = this.#state[slot] ?? 0;
    if (score < 0 ? state === 0 : state === fits && score < this.#cutScore) return;
    this.fitCount += Number(score >= 0) - (state & fits);
    if ((state & listed) !== 0) {
      const at = this.#slots.indexOf(slot);
      if (score >= 0 && this.#staysAt(at, slot, score)) {
        this.#listedScores[at] = score;
        return;
      }
      this.#drop(at);
    }
    this.#state[slot] = score < 0 ? 0 : fits;
    if (score < 0 || !this.#isBeforeCut(score, slot)) return;
    this.#insert(slot, score);
    if (this.#count <= 2 * this.#kept) return;
    while (this.#count > this.#kept) this.#drop(this.#count - 1);
    this.#cutAtLast();
  }

  /** The best host, or -1. `length`: of the fleet. */
  best(length: number): Slot {
    if (this.#count === 0 && this.fitCount > 0) this.build(length);
    return this.#count === 0 ? -1 : (this.#slots[0] ?? -1);
  }

  /** The best hosts in order, until the next change; whether these are all that are not refused is `areAll`. */
  inOrder(length: number): Iterable<Slot> {
    if (this.#count < Math.min(this.#kept / 2, this.fitCount)) this.build(length);
    return this.#slots.subarray(0, this.#count);
  }

  get areAll(): boolean {
    return this.#count === this.fitCount;
  }

  /** Whether a listed host need not move: between its neighbours still, and before the cut. */
  #staysAt(at: number, slot: Slot, score: number): boolean {
    if (at > 0 && this.#isBefore(score, slot, at - 1)) return false;
    return at + 1 < this.#count ? !this.#isAfter(score, slot, at + 1) : this.#isBeforeOrAtCut(score, slot);
  }

  #isBeforeOrAtCut(score: number, slot: Slot): boolean {
    return score > this.#cutScore || (score === this.#cutScore && (this.#names[slot] ?? '') <= this.#cutName);
  }

  #isBeforeCut(score: number, slot: Slot): boolean {
    return score > this.#cutScore || (score === this.#cutScore && (this.#names[slot] ?? '') < this.#cutName);
  }

  #isBefore(score: number, slot: Slot, at: number): boolean {
    const other = this.#listedScores[at] ?? refused;
    if (score !== other) return score > other;
    return (this.#names[slot] ?? '') < (this.#names[this.#slots[at] ?? -1] ?? '');
  }

  #isAfter(score: number, slot: Slot, at: number): boolean {
    const other = this.#listedScores[at] ?? refused;
    if (score !== other) return score < other;
    return (this.#names[slot] ?? '') > (this.#names[this.#slots[at] ?? -1] ?? '');
  }

  #cutAtLast(): void {
    const last = this.#count - 1;
    this.#cutScore = this.#listedScores[last] ?? refused;
    this.#cutName = this.#names[this.#slots[last] ?? -1] ?? '';
  }

  #insert(slot: Slot, score: number): void {
    let from = 0;
    let to = this.#count;
    while (from < to) {
      const middle = (from + to) >> 1;
      if (this.#isBefore(score, slot, middle)) to = middle;
      else from = middle + 1;
    }
    this.#slots.copyWithin(from + 1, from, this.#count);
    this.#listedScores.copyWithin(from + 1, from, this.#count);
    this.#slots[from] = slot;
    this.#listedScores[from] = score;
    this.#count += 1;
    this.#state[slot] = fits | listed;
  }

  #drop(at: number): void {
    this.#state[this.#slots[at] ?? 0] = fits;
    this.#slots.copyWithin(at, at + 1, this.#count);
    this.#listedScores.copyWithin(at, at + 1, this.#count);
    this.#count -= 1;
  }
}
