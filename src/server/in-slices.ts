// Long answers without holding up everyone else: steps are taken until a slice of time is used up, then others have their turn.

import { type Clock, sleep } from '../base/clock.ts';

/** Requests and reconciles wait no longer than this, and one step, for an answer that takes long. */
const sliceMsDefault = 8;

/** Takes all `steps`. Between slices the world may change: steps must not rest on what they read before. */
export async function inSlices<T>(clock: Clock, steps: Generator<void, T>, sliceMs = sliceMsDefault): Promise<T> {
  let sinceMs = clock.monotonicMs();
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
    if (clock.monotonicMs() - sinceMs < sliceMs) continue;
    await sleep(clock, 0);
    sinceMs = clock.monotonicMs();
  }
}
