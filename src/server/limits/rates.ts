// Rate limiters: one bucket of tokens for each key, kept as the moment at which it will be full again (GCRA). It holds a bounded number
// of keys and sets no timer.

import type { Clock } from '../../base/clock.ts';

export interface Rate {
  readonly perSecond: number;
  /** Requests that may come at once after a pause. */
  readonly burst: number;
}

/** Some 100 bytes each. */
const keysMaxDefault = 65_536;

export class Rates {
  readonly #clock: Clock;
  readonly #intervalMs: number;
  readonly #burstMs: number;
  readonly #keysMax: number;
  /** When each bucket will be full again; the one used least recently is first. */
  readonly #fullAtMs = new Map<string, number>();

  constructor({ perSecond, burst }: Rate, { clock, keysMax = keysMaxDefault }: { clock: Clock; keysMax?: number }) {
    this.#clock = clock;
    this.#intervalMs = 1_000 / perSecond;
    this.#burstMs = burst * this.#intervalMs;
    this.#keysMax = keysMax;
  }

  /** Takes one token. Answers 0, or for how many milliseconds there is none: then nothing was taken. */
  take(key: string): number {
    const nowMs = this.#clock.monotonicMs();
    const fullAtMs = Math.max(this.#fullAtMs.get(key) ?? 0, nowMs) + this.#intervalMs;
    const overMs = fullAtMs - nowMs - this.#burstMs;
    // A fraction of an interval is lost in the sum of fractions.
    if (overMs > this.#intervalMs / 1_000) return overMs;
    this.#fullAtMs.delete(key);
    this.#fullAtMs.set(key, fullAtMs);
    if (this.#fullAtMs.size > this.#keysMax) this.#forgetOldest();
    return 0;
  }

  #forgetOldest(): void {
    for (const key of this.#fullAtMs.keys()) {
      this.#fullAtMs.delete(key);
      return;
    }
  }
}
