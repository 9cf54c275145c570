// The delay before a retry: doubling, capped, and random, so that many clients do not retry together.

import type { Prng } from './prng.ts';

export interface BackoffOptions {
  readonly delayMsMin: number;
  readonly delayMsMax: number;
}

/** The delay before try number `attempt` (0 for the first retry): between half and all of the doubled delay. */
export function backoffMs(attempt: number, options: BackoffOptions, prng: Prng): number {
  const full = Math.min(options.delayMsMax, options.delayMsMin * 2 ** Math.min(attempt, 30));
  const half = Math.floor(full / 2);
  return half + prng.below(full - half + 1);
}
