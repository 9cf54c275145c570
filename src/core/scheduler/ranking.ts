// Ranking: hosts by score. They stand in blocks of 64 whose best meet in a winner tree (Knuth, The Art of Computer Programming vol. 3,
// 5.4.1): the best is read off, and one host's new score costs a look at its block's best, seldom more. Many rankings are kept, so what a
// change touches of each must be little. Ties go to the lower name, so that the answer does not hang on the order of hosts.

import type { Slot } from './slot.ts';
import { NodeHeap } from './winner-tree.ts';

/** In the place of a score where there is no host. Hosts that a rule refuses have lower numbers yet (verdicts.ts). */
export const refused = -1;

const blockBits = 6;
const blockLength = 1 << blockBits;

export class Ranking {
  /** By slot; 0 and more, or below 0 for hosts that are refused. */
  readonly scores: Float64Array;
  /** How many hosts are not refused. */
  fitCount = 0;
  readonly #names: readonly string[];
  readonly #blocks: number;
  /** Node i has children 2i and 2i+1; leaves are at `#blocks + block`. Each holds the slot that wins below it, or -1. */
  readonly #winners: Int32Array;

  /** `capacity`: a power of two; `names` by slot, read when scores are equal. */
  constructor(capacity: number, names: readonly string[]) {
    this.scores = new Float64Array(capacity).fill(refused);
    this.#names = names;
    this.#blocks = Math.max(1, capacity >> blockBits);
    this.#winners = new Int32Array(2 * this.#blocks).fill(-1);
  }

  /** All scores at once: `scoreOf` for slots below `length`. */
  build(length: number, scoreOf: (slot: Slot) => number): void {
    const { scores } = this;
    const winners = this.#winners;
    this.fitCount = 0;
    for (let slot = 0; slot < length; slot++) {
      const score = scoreOf(slot);
      scores[slot] = score;
      if (score >= 0) this.fitCount += 1;
    }
    for (let block = 0; block < this.#blocks; block++) winners[this.#blocks + block] = this.#bestOf(block);
    for (let node = this.#blocks - 1; node > 0; node--) winners[node] = this.#play(node);
  }

  set(slot: Slot, score: number): void {
    const old = this.scores[slot] ?? refused;
    if (score === old) return;
    this.fitCount += Number(score >= 0) - Number(old >= 0);
    this.scores[slot] = score;
    const block = slot >> blockBits;
    const best = this.#winners[this.#blocks + block] ?? -1;
    if (best === slot) this.#lead(block, score > old ? slot : this.#bestOf(block), slot);
    else if (score >= 0 && (best < 0 || this.beats(slot, best))) this.#lead(block, slot, best);
  }

  /** The best host, or -1. */
  best(): Slot {
    return this.#winners[1] ?? -1;
  }

  /** All hosts that are not refused, best first. */
  *inOrder(): Iterable<Slot> {
    const winners = this.#winners;
    const blocks = this.#blocks;
    // Nodes of the tree as they are; hosts that are next in their block as -1 - slot.
    const heap = new NodeHeap((a, b) => this.beats(this.#slotAt(a), this.#slotAt(b)));
    if (this.best() >= 0) heap.push(1);
    while (heap.size > 0) {
      let node = heap.pop();
      const slot = this.#slotAt(node);
      yield slot;
      while (node > 0 && node < blocks) {
        const left = 2 * node;
        const winnerIsLeft = winners[left] === slot;
        const loser = winnerIsLeft ? left + 1 : left;
        if ((winners[loser] ?? -1) >= 0) heap.push(loser);
        node = winnerIsLeft ? left : left + 1;
      }
      const next = this.#nextInBlock(slot);
      if (next >= 0) heap.push(-1 - next);
    }
  }

  /** Whether `a` comes before `b`, neither of them refused. */
  beats(a: Slot, b: Slot): boolean {
    const scoreA = this.scores[a] ?? refused;
    const scoreB = this.scores[b] ?? refused;
    return scoreA === scoreB ? (this.#names[a] ?? '') < (this.#names[b] ?? '') : scoreA > scoreB;
  }

  #slotAt(node: number): Slot {
    return node < 0 ? -1 - node : (this.#winners[node] ?? -1);
  }

  /** A block has another best, or its best has another score. */
  #lead(block: number, best: Slot, before: Slot): void {
    const winners = this.#winners;
    let node = this.#blocks + block;
    winners[node] = best;
    for (node >>= 1; node > 0; node >>= 1) {
      const old = winners[node];
      const winner = this.#play(node);
      winners[node] = winner;
      // Above, nothing is new when a host of another block won here and still does.
      if (winner === old && winner !== best && winner !== before) return;
    }
  }

  #bestOf(block: number): Slot {
    const from = block << blockBits;
    const to = Math.min(from + blockLength, this.scores.length);
    let best = -1;
    for (let slot = from; slot < to; slot++) {
      if ((this.scores[slot] ?? refused) >= 0 && (best < 0 || this.beats(slot, best))) best = slot;
    }
    return best;
  }

  /** The best of a block after `last`, or -1. */
  #nextInBlock(last: Slot): Slot {
    const from = (last >> blockBits) << blockBits;
    const to = Math.min(from + blockLength, this.scores.length);
    const most = this.scores[last] ?? refused;
    let best = -1;
    for (let slot = from; slot < to; slot++) {
      const score = this.scores[slot] ?? refused;
      if (score < 0 || score > most || slot === last || !this.beats(last, slot)) continue;
      if (best < 0 || this.beats(slot, best)) best = slot;
    }
    return best;
  }

  #play(node: number): Slot {
    const a = this.#winners[2 * node] ?? -1;
    const b = this.#winners[2 * node + 1] ?? -1;
    if (a < 0) return b;
    if (b < 0) return a;
    return this.beats(b, a) ? b : a;
  }
}
