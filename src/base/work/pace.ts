// So much a second, in the long run, and so much at once. Drops nothing: whoever does more waits.

import { type Clock, sleep } from '../clock.ts';

export interface Pace {
  /** Takes note that so much is done, and answers how long to wait before more is; within the burst 0. */
  note(amount: number): number;
  /** The same, and waits; no longer than until `signal` aborts. */
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
