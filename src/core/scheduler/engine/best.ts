// Best: the best host of those looked at, and what is answered of it.

import type { Slot } from './slot.ts';
import { refused } from './verdicts.ts';

export interface Choice {
  readonly slot: Slot;
  readonly score: number;
  /** How many hosts fit, groups aside. */
  readonly fitCount: number;
  /** Where others are was asked, so that fewer than those may have been let through. */
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
