// Best: keeps the best host of those offered, and builds the answer about it.

import type { Slot } from './slot.ts';
import { refused } from './verdicts.ts';

export interface Choice {
  readonly slot: Slot;
  readonly score: number;
  /** Number of hosts that fit, without the rules about groups. */
  readonly fitCount: number;
  /** Rules about neighbours were evaluated, so fewer hosts than `fitCount` may fit. */
  readonly neighboursAsked?: true;
}

/** The best host of those offered; ties go to the lower name. */
export class Best {
  slot: Slot = -1;
  score = refused;
  readonly #names: readonly string[];

  constructor(names: readonly string[]) {
    this.#names = names;
  }

  offer(slot: Slot, score: number): void {
    if (score < this.score) return;
    if (score === this.score && (this.#names[slot] ?? '') > (this.#names[this.slot] ?? '')) return;
    this.slot = slot;
    this.score = score;
  }

  choice(fitCount: number): Choice | null {
    return this.slot < 0 ? null : { slot: this.slot, score: this.score, fitCount };
  }
}
