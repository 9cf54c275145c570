// Winner tree: node i has the children 2i and 2i+1 and holds the slot that wins below it, or -1. This file reads it in
// order.

import type { Slot } from './slot.ts';

/**
 * The leaves in order: after a leaf is taken, the slots that lost against it on its path become candidates. `beats`:
 * whether a comes before b.
 */
export function* inOrderOf(winners: Int32Array, leaves: number, beats: (a: Slot, b: Slot) => boolean): Iterable<Slot> {
  const heap = new NodeHeap((a, b) => beats(winners[a] ?? -1, winners[b] ?? -1));
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

/** A binary heap of nodes with the first in order on top. */
export class NodeHeap {
  readonly #isBefore: (a: number, b: number) => boolean;
  readonly #nodes: number[] = [];

  constructor(isBefore: (a: number, b: number) => boolean) {
    this.#isBefore = isBefore;
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
      if (!this.#isBefore(node, above)) break;
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
      if (child + 1 < length && this.#isBefore(nodes[child + 1] ?? 0, nodes[child] ?? 0)) child += 1;
      if (!this.#isBefore(nodes[child] ?? 0, last)) break;
      nodes[at] = nodes[child] ?? 0;
      at = child;
    }
    nodes[at] = last;
    return top;
  }
}
