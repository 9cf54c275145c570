// Ranking: hosts by score in a winner tree (Knuth, The Art of Computer Programming vol. 3, 5.4.1): the best is read off, one host's new
// score costs O(log hosts), and the next best follow one by one. Ties go to the lower name, so that the answer does not hang on the order
// of hosts.

import type { Slot } from './slot.ts';

/** In the place of a score where there is no host. Hosts that a rule refuses have lower numbers yet (verdicts.ts). */
export const refused = -1;

export class Ranking {
  /** By slot; 0 and more, or below 0 for hosts that are refused. */
  readonly scores: Float64Array;
  /** How many hosts are not refused. */
  fitCount = 0;
  readonly #names: readonly string[];
  readonly #leaves: number;
  /** Node i has children 2i and 2i+1; leaves are at `#leaves + slot`. Each holds the slot that wins below it, or -1. */
  readonly #winners: Int32Array;

  /** `capacity`: a power of two; `names` by slot, read when scores are equal. */
  constructor(capacity: number, names: readonly string[]) {
    this.scores = new Float64Array(capacity).fill(refused);
    this.#names = names;
    this.#leaves = capacity;
    this.#winners = new Int32Array(2 * capacity).fill(-1);
  }

  /** All scores at once: `scoreOf` for slots below `length`. */
  build(length: number, scoreOf: (slot: Slot) => number): void {
    const { scores } = this;
    const winners = this.#winners;
    this.fitCount = 0;
    for (let slot = 0; slot < length; slot++) {
      const score = scoreOf(slot);
      scores[slot] = score;
      winners[this.#leaves + slot] = score < 0 ? -1 : slot;
      if (score >= 0) this.fitCount += 1;
    }
    for (let node = this.#leaves - 1; node > 0; node--) winners[node] = this.#play(node);
  }

  set(slot: Slot, score: number): void {
    const old = this.scores[slot] ?? refused;
    if (score === old) return;
    this.fitCount += Number(score >= 0) - Number(old >= 0);
    this.scores[slot] = score;
    const winners = this.#winners;
    let node = this.#leaves + slot;
    winners[node] = score < 0 ? -1 : slot;
    for (node >>= 1; node > 0; node >>= 1) {
      const before = winners[node];
      const winner = this.#play(node);
      winners[node] = winner;
      // Above, nothing is new when another host won here before and still does.
      if (winner === before && winner !== slot) return;
    }
  }

  /** The best host, or -1. */
  best(): Slot {
    return this.#winners[1] ?? -1;
  }

  /** All hosts that are not refused, best first. */
  inOrder(): Iterable<Slot> {
    return inOrderOf(this.#winners, this.#leaves, this);
  }

  /** Whether `a` comes before `b`, neither of them refused. */
  beats(a: Slot, b: Slot): boolean {
    const scoreA = this.scores[a] ?? refused;
    const scoreB = this.scores[b] ?? refused;
    return scoreA === scoreB ? (this.#names[a] ?? '') < (this.#names[b] ?? '') : scoreA > scoreB;
  }

  #play(node: number): Slot {
    const a = this.#winners[2 * node] ?? -1;
    const b = this.#winners[2 * node + 1] ?? -1;
    if (a < 0) return b;
    if (b < 0) return a;
    return this.beats(b, a) ? b : a;
  }
}

/** The leaves of a winner tree in order: what lost on the way down to one that is taken is in the running then. */
export function* inOrderOf(winners: Int32Array, leaves: number, ranking: Pick<Ranking, 'beats'>): Iterable<Slot> {
  const heap = new NodeHeap(winners, ranking);
  if ((winners[1] ?? -1) >= 0) heap.push(1);
  while (heap.size > 0) {
    let node = heap.pop();
    const slot = winners[node] ?? -1;
    yield slot;
    while (node < leaves) {
      const left = 2 * node;
      const winnerIsLeft = winners[left] === slot;
      const loser = winnerIsLeft ? left + 1 : left;
      if ((winners[loser] ?? -1) >= 0) heap.push(loser);
      node = winnerIsLeft ? left : left + 1;
    }
  }
}

/** A binary heap of nodes of a winner tree, the one with the best winner first. */
class NodeHeap {
  readonly #winners: Int32Array;
  readonly #ranking: Pick<Ranking, 'beats'>;
  readonly #nodes: number[] = [];

  constructor(winners: Int32Array, ranking: Pick<Ranking, 'beats'>) {
    this.#winners = winners;
    this.#ranking = ranking;
  }

  get size(): number {
    return this.#nodes.length;
  }

  push(node: number): void {
    const nodes = this.#nodes;
    let at = nodes.push(node) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = nodes[parent] ?? 0;
      if (!this.#beats(node, above)) break;
      nodes[at] = above;
      at = parent;
    }
    nodes[at] = node;
  }

  pop(): number {
    const nodes = this.#nodes;
    const top = nodes[0] ?? 0;
    const last = nodes.pop() ?? 0;
    const { length } = nodes;
    if (length === 0) return top;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= length) break;
      if (child + 1 < length && this.#beats(nodes[child + 1] ?? 0, nodes[child] ?? 0)) child += 1;
      if (!this.#beats(nodes[child] ?? 0, last)) break;
      nodes[at] = nodes[child] ?? 0;
      at = child;
    }
    nodes[at] = last;
    return top;
  }

  #beats(a: number, b: number): boolean {
    return this.#ranking.beats(this.#winners[a] ?? -1, this.#winners[b] ?? -1);
  }
}
