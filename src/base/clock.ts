// Time as an argument. Wall time is for people, monotonic time for deadlines; events are never ordered by wall time.

export interface Timer {
  /** Stops the timer; harmless when it has fired. */
  cancel(): void;
}

export interface Clock {
  /** Milliseconds since the Unix epoch. May jump. */
  nowMs(): number;
  /** Milliseconds since an arbitrary start. Never falls. */
  monotonicMs(): number;
  /** Calls `fire` once after `delayMs`. With `background` a pending timer does not keep the process alive. */
  setTimer(delayMs: number, fire: () => void, options?: { background?: boolean }): Timer;
}

/** Resolves after `delayMs`, or immediately when `signal` aborts. Never rejects: the caller checks `signal.aborted`. */
export function sleep(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const finish = (): void => {
      timer.cancel();
      signal?.removeEventListener('abort', finish);
      resolve();
    };
    const timer = clock.setTimer(delayMs, finish);
    signal?.addEventListener('abort', finish, { once: true });
  });
}
