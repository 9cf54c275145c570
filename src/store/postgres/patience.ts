// How long to retry while the server is unavailable. A request that the server refused is never retried.

import { backoffMs } from '../../base/backoff.ts';
import { type Clock, sleep } from '../../base/clock.ts';
import type { Prng } from '../../base/prng.ts';
import { mayPass } from './postgres-errors.ts';

export interface PatienceOptions {
  readonly clock: Clock;
  readonly prng: Prng;
  /** From the first failure on. */
  readonly patienceMs: number;
}

const delays = { delayMsMin: 20, delayMsMax: 1_000 };

export class Patience {
  readonly #options: PatienceOptions;
  #attempts = 0;
  #untilMs: number | undefined;

  constructor(options: PatienceOptions) {
    this.#options = options;
  }

  /** Waits, then resolves with true when another try is worthwhile; else resolves with false. */
  async allows(error: unknown): Promise<boolean> {
    const { clock, prng, patienceMs } = this.#options;
    if (!mayPass(error)) return false;
    const nowMs = clock.monotonicMs();
    this.#untilMs ??= nowMs + patienceMs;
    const delayMs = backoffMs(this.#attempts++, delays, prng);
    if (nowMs + delayMs > this.#untilMs) return false;
    await sleep(clock, delayMs);
    return true;
  }
}
