// DomainRanking: the hosts of each domain of a topology in order, beside the top candidates of the whole fleet. For
// rules that give the same verdict to all hosts of a zone or rack: then only the best host of each domain has to be
// examined.

import type { ChangeLog } from './change-log.ts';
import type { Scores } from './leaders.ts';
import type { Slot } from './slot.ts';
import type { Topology } from '../neighbours/topology.ts';
import { inOrderOf } from './winner-tree.ts';

/** A winner tree over the hosts of one domain. */
interface Tree {
  readonly leaves: number;
  readonly winners: Int32Array;
}

export class DomainRanking {
  /** Number of slots covered. */
  readonly length: number;
  readonly #scores: Scores;
  readonly #domainOf: readonly number[];
  /** By domain; the last tree holds the hosts without the label. */
  readonly #trees: Tree[];
  /** By slot: its leaf in the tree of its domain. */
  readonly #leafOf: Int32Array;

  #upTo: number;

  /** Valid as long as no host changes its domain. `upTo`: the position in the change log that the scores reflect. */
  constructor(scores: Scores, topology: Topology, length: number, upTo: number) {
    this.#upTo = upTo;
    this.length = length;
    this.#scores = scores;
    this.#domainOf = topology.domainOf;
    this.#leafOf = new Int32Array(length).fill(-1);
    const slots: Slot[][] = Array.from({ length: topology.values.length + 1 }, () => []);
    for (let slot = 0; slot < length; slot++) slots[this.#domain(slot, topology.values.length)]?.push(slot);
    this.#trees = slots.map((members) => this.#build(members));
  }

  /** Number of domains, plus one for hosts without the label. */
  get count(): number {
    return this.#trees.length;
  }

  /** The best host of a domain, or -1. */
  best(domain: number): Slot {
    return this.#trees[domain]?.winners[1] ?? -1;
  }

  /** All hosts of a domain that are not refused, best first. */
  inOrder(domain: number): Iterable<Slot> {
    const tree = this.#trees[domain];
    return tree ? inOrderOf(tree.winners, tree.leaves, (a, b) => this.#scores.beats(a, b)) : [];
  }

  /** Applies the changes of hosts since the last call. Returns false when there are too many. */
  catchUp(log: ChangeLog): boolean {
    const count = log.end - this.#upTo > this.length ? -1 : log.collect(this.#upTo);
    if (count < 0) return false;
    for (let i = 0; i < count; i++) this.#mend(log.changed[i] ?? 0);
    this.#upTo = log.end;
    return true;
  }

  #mend(slot: Slot): void {
    const tree = this.#trees[this.#domain(slot, this.#trees.length - 1)];
    const leaf = this.#leafOf[slot] ?? -1;
    if (!tree || leaf < 0) return;
    const { winners, leaves } = tree;
    let node = leaves + leaf;
    winners[node] = this.#scores.of(slot) < 0 ? -1 : slot;
    for (node >>= 1; node > 0; node >>= 1) {
      const before = winners[node];
      const winner = this.#play(winners, node);
      winners[node] = winner;
      // The levels above do not change when another host won here before and still does.
      if (winner === before && winner !== slot) return;
    }
  }

  #domain(slot: Slot, none: number): number {
    const domain = this.#domainOf[slot] ?? -1;
    return domain < 0 ? none : domain;
  }

  #build(members: readonly Slot[]): Tree {
    let leaves = 1;
    while (leaves < members.length) leaves *= 2;
    const winners = new Int32Array(2 * leaves).fill(-1);
    for (const [leaf, slot] of members.entries()) {
      this.#leafOf[slot] = leaf;
      winners[leaves + leaf] = this.#scores.of(slot) < 0 ? -1 : slot;
    }
    for (let node = leaves - 1; node > 0; node--) winners[node] = this.#play(winners, node);
    return { leaves, winners };
  }

  #play(winners: Int32Array, node: number): Slot {
    const a = winners[2 * node] ?? -1;
    const b = winners[2 * node + 1] ?? -1;
    if (a < 0) return b;
    if (b < 0) return a;
    return this.#scores.beats(b, a) ? b : a;
  }
}
