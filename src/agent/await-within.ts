// Calls that must not be waited for forever: cut off by a signal or after a time, even when the called one heeds neither.

import { ApiError } from '../api/errors.ts';
import type { Clock } from '../base/clock.ts';

interface Limits {
  readonly clock: Clock;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  readonly what: string;
}

/**
 * What `call` resolves to. Throws `Unavailable` when that takes longer than `timeoutMs` or `signal` aborts; the signal that
 * `call` gets has then aborted too.
 */
export function awaitWithin<Result>(limits: Limits, call: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
  const limit = new AbortController();
  return settleWithin(
    limits,
    () => call(limit.signal),
    () => limit.abort(),
  );
}

/** The same for what heeds no signal; `onCutOff` is called when it is waited for no longer. */
export async function settleWithin<Result>(
  { clock, timeoutMs, signal, what }: Limits,
  call: () => Promise<Result>,
  onCutOff: () => void = () => {},
): Promise<Result> {
  const cutOff = Promise.withResolvers<never>();
  const giveUp = (): void => {
    cutOff.reject(new ApiError('Unavailable', `${what}: given up`));
    onCutOff();
  };
  const timer = clock.setTimer(timeoutMs, () => {
    cutOff.reject(new ApiError('Unavailable', `${what}: no answer within ${timeoutMs} ms`));
    onCutOff();
  });
  cutOff.promise.catch(() => {}); // nobody may be waiting for it any more
  signal.addEventListener('abort', giveUp, { once: true });
  try {
    if (signal.aborted) giveUp();
    const result = signal.aborted ? cutOff.promise : call();
    return await Promise.race([result, cutOff.promise]);
  } finally {
    timer.cancel();
    signal.removeEventListener('abort', giveUp);
  }
}
