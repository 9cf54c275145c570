// Leaders: the best hosts of one shape. Of all others it is known only that they come after the worst of these, which is all that most
// decisions need: so a changed host costs each shape a comparison, not a place in an order of all. They stand in no order themselves:
// the best is looked for when it is asked for. When too many have gone, one pass over all hosts finds new ones. Ties go to the lower
// name, so that the answer does not hang on the order of hosts.

import type { Desk } from './desks.ts';
import type { Slot } from './slot.ts';
import { refused } from './verdicts.ts';

export interface Scores {
  /** 0 and more, or below 0 when the host is refused. */
  of(slot: Slot): number;
  /** Whether `a` comes before `b`, neither of them refused. */
  beats(a: Slot, b: Slot): boolean;
}

/** So many are left when there are twice that, and at least half of that wanted before they are read in order. */
const keptUsually = 32;

// The state of a host is a byte: refused, or fits, or where it is listed, counted from `listed` on.
const unfit = 0;
const fits = 1;
const listed = 2;

/** Of a host that now has this score: it is none of the best, before as after, and fits or not as before. */
export function changesNothing(score: number, state: number, cutScore: number): boolean {
  return score < 0 ? state === unfit : state === fits && score < cutScore;
}

export class Leaders {
  /** How many hosts are not refused. */
  fitCount = 0;
  /** `#count` of them. */
  readonly #slots: Int32Array;
  readonly #scores: Float64Array;
  #count = 0;
  /** Where the best stands; -1 when that is not known. */
  #best = -1;
  readonly #scoreOf: (slot: Slot) => number;
  readonly #names: readonly string[];
  readonly #desk: Desk;
  /** With `#cutScore`: hosts that are not listed do not come before this; those that are, not after it. */
  #cutName = '';
  readonly #kept: number;

  /** `names` by slot, read when scores are equal; `kept` is at most 126. */
  constructor(desk: Desk, names: readonly string[], scoreOf: (slot: Slot) => number, kept = keptUsually) {
    this.#kept = kept;
    this.#names = names;
    this.#scoreOf = scoreOf;
    this.#desk = desk;
    this.#setCut(refused, '');
    this.#slots = new Int32Array(2 * kept + 1);
    this.#scores = new Float64Array(2 * kept + 1);
  }

  /** Looks at all hosts below `length`. */
  build(length: number): void {
    const { states, width, at } = this.#desk;
    for (let cell = at; cell < states.length; cell += width) states[cell] = unfit;
    this.#count = 0;
    this.#best = -1;
    this.fitCount = 0;
    this.#setCut(refused, '');
    for (let slot = 0; slot < length; slot++) {
      const score = this.#scoreOf(slot);
      if (score < 0) continue;
      this.fitCount += 1;
      this.#setState(slot, fits);
      this.#offer(slot, score);
    }
  }

  /** A host has this score now. Mostly it is none of the best, before as after. */
  update(slot: Slot, score: number): void {
    const state = this.#state(slot);
    if (changesNothing(score, state, this.#cutScore)) return;
    this.fitCount += Number(score >= 0) - Number(state !== unfit);
    if (state < listed) {
      this.#setState(slot, score < 0 ? unfit : fits);
      if (score >= 0) this.#offer(slot, score);
      return;
    }
    const at = state - listed;
    if (score < 0 || !this.#isBeforeOrAtCut(score, slot)) {
      this.#drop(at);
      if (score < 0) this.#setState(slot, unfit);
      return;
    }
    this.#scores[at] = score;
    this.#moved(at);
  }

  /** The best host, or -1. `length`: of the fleet. */
  best(length: number): Slot {
    if (this.#count === 0 && this.fitCount > 0) this.build(length);
    if (this.#count === 0) return -1;
    if (this.#best < 0) this.#best = this.#next(-1);
    return this.#slots[this.#best] ?? -1;
  }

  /** The best hosts in order, until the next change; whether these are all that are not refused is `areAll`. */
  *inOrder(length: number): Iterable<Slot> {
    if (this.#count < Math.min(this.#kept / 2, this.fitCount)) this.build(length);
    if (this.#count === 0) return;
    if (this.#best < 0) this.#best = this.#next(-1);
    for (let at = this.#best; at >= 0; at = this.#next(at)) yield this.#slots[at] ?? -1;
  }

  get areAll(): boolean {
    return this.#count === this.fitCount;
  }

  /** Lists a host that fits and is not listed, if it comes before the cut. */
  #offer(slot: Slot, score: number): void {
    if (!this.#isBeforeCut(score, slot)) return;
    const at = this.#count++;
    this.#slots[at] = slot;
    this.#scores[at] = score;
    this.#setState(slot, listed + at);
    this.#moved(at);
    if (this.#count <= 2 * this.#kept) return;
    while (this.#count > this.#kept) this.#drop(this.#worst());
    const worst = this.#worst();
    this.#setCut(this.#scores[worst] ?? refused, this.#nameAt(worst));
  }

  /** The last one takes its place. */
  #drop(at: number): void {
    const last = --this.#count;
    this.#setState(this.#slots[at] ?? 0, fits);
    if (this.#best === at) this.#best = -1;
    if (at === last) return;
    const slot = this.#slots[last] ?? 0;
    this.#slots[at] = slot;
    this.#scores[at] = this.#scores[last] ?? refused;
    this.#setState(slot, listed + at);
    if (this.#best === last) this.#best = at;
  }

  /** What stands here has come, or has another score. */
  #moved(at: number): void {
    const best = this.#best;
    // The best may have become worse than another.
    if (best === at) this.#best = -1;
    else if (best >= 0 && this.#isBefore(at, best)) this.#best = at;
    else if (best < 0 && this.#count === 1) this.#best = at;
  }

  /** The best of those after that at `before` (-1: of all), or -1. */
  #next(before: number): number {
    const scores = this.#scores;
    const count = this.#count;
    const most = before < 0 ? Number.POSITIVE_INFINITY : (scores[before] ?? refused);
    let found = -1;
    let foundScore = refused;
    for (let at = 0; at < count; at++) {
      const score = scores[at] ?? refused;
      if (score < foundScore || score > most || at === before) continue;
      if (score === most && before >= 0 && this.#isBefore(at, before)) continue;
      if (score === foundScore && !this.#isBefore(at, found)) continue;
      found = at;
      foundScore = score;
    }
    return found;
  }

  #worst(): number {
    let found = 0;
    for (let at = 1; at < this.#count; at++) if (this.#isBefore(found, at)) found = at;
    return found;
  }

  #isBefore(a: number, b: number): boolean {
    const scoreA = this.#scores[a] ?? refused;
    const scoreB = this.#scores[b] ?? refused;
    return scoreA === scoreB ? this.#nameAt(a) < this.#nameAt(b) : scoreA > scoreB;
  }

  #isBeforeOrAtCut(score: number, slot: Slot): boolean {
    return score > this.#cutScore || (score === this.#cutScore && (this.#names[slot] ?? '') <= this.#cutName);
  }

  #isBeforeCut(score: number, slot: Slot): boolean {
    return score > this.#cutScore || (score === this.#cutScore && (this.#names[slot] ?? '') < this.#cutName);
  }

  #nameAt(at: number): string {
    return this.#names[this.#slots[at] ?? -1] ?? '';
  }

  #setCut(score: number, name: string): void {
    const { cuts, at } = this.#desk;
    cuts[at] = score;
    this.#cutName = name;
  }

  get #cutScore(): number {
    const { cuts, at } = this.#desk;
    return cuts[at] ?? refused;
  }

  #state(slot: Slot): number {
    const { states, width, at } = this.#desk;
    return states[slot * width + at] ?? unfit;
  }

  #setState(slot: Slot, state: number): void {
    const { states, width, at } = this.#desk;
    states[slot * width + at] = state;
  }
}
