// Asks another system again and again until it says how something has ended, for a limited time. A failure to ask does not end it.

import { type Clock, sleep } from '../../../base/clock.ts';

export interface Polling {
  readonly clock: Clock;
  readonly pollMs: number;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** How much longer it waits after each failure, at most. */
const pollMsMax = 60_000;

/** `ask`: the end; `'later'`: none yet; `'failing'`: it could not be asked. Undefined: the time is over. Throws when `signal` aborts. */
export async function poll<End extends object>(
  ask: () => Promise<End | 'later' | 'failing'>,
  { clock, pollMs, timeoutMs, signal }: Polling,
): Promise<End | undefined> {
  const deadlineMs = clock.monotonicMs() + timeoutMs;
  let delayMs = pollMs;
  for (;;) {
    const answer = await ask();
    if (typeof answer === 'object') return answer;
    if (signal.aborted) throw new Error('it was stopped; what runs elsewhere goes on');
    if (clock.monotonicMs() >= deadlineMs) return undefined;
    delayMs = answer === 'later' ? pollMs : Math.max(pollMs, Math.min(pollMsMax, delayMs * 2));
    await sleep(clock, delayMs, signal);
    if (signal.aborted) throw new Error('it was stopped; what runs elsewhere goes on');
  }
}
