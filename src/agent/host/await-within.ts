// Calls that must not be waited for forever: cut off by a signal or after a time, even when the called one heeds neither.

import { ApiError } from '../../api/errors.ts';
import type { Clock } from '../../base/clock.ts';

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
export function settleWithin<Result>(
  { clock, timeoutMs, signal, what }: Limits,
  call: () => Promise<Result>,
  onCutOff: () => void = () => {},
): Promise<Result> {
  // One promise, and no race of several: an agent makes one of these for each thing that it says or hears.
  return new Promise((resolve, reject) => {
    const end = (): void => {
      timer.cancel();
      signal.removeEventListener('abort', giveUp);
    };
    const cutOff = (why: string): void => {
      end();
      reject(new ApiError('Unavailable', `${what}: ${why}`));
      onCutOff();
    };
    const giveUp = (): void => cutOff('given up');
    const timer = clock.setTimer(timeoutMs, () => cutOff(`no answer within ${timeoutMs} ms`));
    if (signal.aborted) return giveUp();
    signal.addEventListener('abort', giveUp, { once: true });
    const fail = (error: unknown): void => {
      end();
      reject(error);
    };
    try {
      call().then((result) => {
        end();
        resolve(result);
      }, fail);
    } catch (error) {
      fail(error);
    }
  });
}
