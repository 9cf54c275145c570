// A rate limiter: an average rate with a burst. It drops nothing: a caller above the rate waits.

import { type Clock, sleep } from '../clock.ts';

export interface Pace {
  /** Records `amount` and returns how long to wait before the next one; 0 within the burst. */
  note(amount: number): number;
  /** The same, and waits; at most until `signal` aborts. */
  take(amount: number, signal?: AbortSignal): Promise<void>;
}

export function createPace({
  clock,
  perSecond,
  atOnceMax,
}: {
  readonly clock: Clock;
  readonly perSecond: number;
  readonly atOnceMax: number;
}): Pace {
  const aheadMsMax = (1000 * atOnceMax) / perSecond;
  let paidUntilMs = Number.NEGATIVE_INFINITY;
  const note = (amount: number): number => {
    const nowMs = clock.monotonicMs();
    paidUntilMs = Math.max(paidUntilMs, nowMs) + (1000 * amount) / perSecond;
    return Math.max(0, paidUntilMs - nowMs - aheadMsMax);
  };
  return {
    note,
    async take(amount, signal) {
      const waitMs = note(amount);
      if (waitMs > 0) await sleep(clock, waitMs, signal);
    },
  };
}
