// Calls that must not be waited for forever: cut off by a signal or after a time, even when the called one heeds neither.

import { ApiError } from '../api/errors.ts';
import type { Clock } from '../base/clock.ts';

/**
 * What `call` resolves to. Throws `Unavailable` when that takes longer than `timeoutMs` or `signal` aborts; the signal that
 * `call` gets has then aborted too.
 */
export async function awaitWithin<Result>(
  options: { readonly clock: Clock; readonly timeoutMs: number; readonly signal: AbortSignal; readonly what: string },
  call: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const { clock, timeoutMs, signal, what } = options;
  const limit = new AbortController();
  const cutOff = Promise.withResolvers<never>();
  const giveUp = (): void => {
    cutOff.reject(new ApiError('Unavailable', `${what}: given up`));
    limit.abort();
  };
  const timer = clock.setTimer(timeoutMs, () => {
    cutOff.reject(new ApiError('Unavailable', `${what}: no answer within ${timeoutMs} ms`));
    limit.abort();
  });
  cutOff.promise.catch(() => {}); // nobody may be waiting for it any more
  signal.addEventListener('abort', giveUp, { once: true });
  try {
    if (signal.aborted) giveUp();
    const result = signal.aborted ? cutOff.promise : call(limit.signal);
    return await Promise.race([result, cutOff.promise]);
  } finally {
    timer.cancel();
    signal.removeEventListener('abort', giveUp);
  }
}
