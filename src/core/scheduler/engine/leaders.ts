// Leaders: the top candidates of one shape. Every other host is known only to come after the worst of them, which is
// enough for most decisions: a changed host costs each shape one comparison instead of a position in a full order. The
// list is unordered; the best entry is searched when it is needed. When too many entries have left, one scan of all
// hosts refills the list. Ties go to the lower name, so the answer does not depend on the order of hosts.

import type { Desk } from './desks.ts';
import type { Slot } from './slot.ts';
import { refused } from './verdicts.ts';

export interface Scores {
  /** A score of 0 or more; below 0 when the host is refused. */
  of(slot: Slot): number;
  /** Whether `a` comes before `b`, neither of them refused. */
  beats(a: Slot, b: Slot): boolean;
}

/**
 * The list is cut to this many entries when it holds twice as many; at least half of them must remain before it is read
 * in order.
 */
const keptUsually = 32;

// The state of a host is one byte: refused, fits but not listed, or its position in the list plus `listed`.
const unfit = 0;
const fits = 1;
const listed = 2;

/**
 * Whether this new score leaves the list as it is: the host is not a top candidate before or after, and still fits or
 * still does not.
 */
export function changesNothing(score: number, state: number, cutScore: number): boolean {
  return score < 0 ? state === unfit : state === fits && score < cutScore;
}

export class Leaders {
  /** How many hosts are not refused. */
  fitCount = 0;
  /** The first `#count` are valid. */
  readonly #slots: Int32Array;
  readonly #scores: Float64Array;
  #count = 0;
  /** Position of the best entry; -1 when unknown. */
  #best = -1;
  readonly #scoreOf: (slot: Slot) => number;
  readonly #names: readonly string[];
  readonly #desk: Desk;
  /** With `#cutScore`: hosts outside the list do not come before this point, and listed hosts do not come after it. */
  #cutName = '';
  readonly #kept: number;

  /** `names` by slot, compared when scores are equal; `kept` is at most 126. */
  constructor(desk: Desk, names: readonly string[], scoreOf: (slot: Slot) => number, kept = keptUsually) {
    this.#kept = kept;
    this.#names = names;
    this.#scoreOf = scoreOf;
    this.#desk = desk;
    this.#setCut(refused, '');
    this.#slots = new Int32Array(2 * kept + 1);
    this.#scores = new Float64Array(2 * kept + 1);
  }

  /** Scans all hosts below `length`. */
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

  /** Sets the score of a host. Most calls concern a host that is no top candidate before or after. */
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

  /** The top candidates in order, until the next change; `areAll` says whether they are all hosts that fit. */
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

  /** The last entry takes its position. */
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

  /** The entry here is new, or has another score. */
  #moved(at: number): void {
    const best = this.#best;
    // The best may now be worse than another.
    if (best === at) this.#best = -1;
    else if (best >= 0 && this.#isBefore(at, best)) this.#best = at;
    else if (best < 0 && this.#count === 1) this.#best = at;
  }

  /** The position of the best entry that comes after the one at `before` (-1: of all), or -1. */
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
