// The last answers about the whole fleet. It takes long to make one for thousands of hosts, and each open dashboard asks for it.

import type { Capacity } from '../api/capacity.ts';
import type { Clock } from '../base/clock.ts';

interface Made {
  readonly atMs: number;
  readonly answer: Promise<Capacity>;
}

export class RecentCapacity {
  readonly #clock: Clock;
  readonly #make: (losses: number) => Promise<Capacity>;
  readonly #last = new Map<number, Made>();

  constructor(clock: Clock, make: (losses: number) => Promise<Capacity>) {
    this.#clock = clock;
    this.#make = make;
  }

  /** What it was about has changed. */
  forget(): void {
    this.#last.clear();
  }

  /** As of no more than `maxAgeMs` ago; one that is being made counts from its beginning. */
  of(losses: number, maxAgeMs: number): Promise<Capacity> {
    const nowMs = this.#clock.monotonicMs();
    const last = this.#last.get(losses);
    if (last !== undefined && maxAgeMs > 0 && nowMs - last.atMs <= maxAgeMs) return last.answer;
    const answer = this.#make(losses);
    this.#last.set(losses, { atMs: nowMs, answer });
    answer.catch(() => this.#last.delete(losses));
    return answer;
  }
}
