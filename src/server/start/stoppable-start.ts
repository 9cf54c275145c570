// A start that can be stopped while it waits for something. What it opens after that is closed and never put to work.

import { type Clock, sleep } from '../../base/clock.ts';

/** The start was stopped by its signal. */
export class StartStopped extends Error {
  override name = 'StartStopped';
  constructor() {
    super('the start was stopped');
  }
}

/** Throws `StartStopped` once `signal` has aborted: for between two steps. */
export function throwIfStopped(signal: AbortSignal): void {
  if (signal.aborted) throw new StartStopped();
}

/** A store that answers closes within milliseconds; one that does not must not hold the process. */
const graceMs = 1_000;

/**
 * What `start` resolves to. When `signal` aborts first, throws `StartStopped` once `start` has ended, or after a second without it;
 * what `start` brings later than that is closed at once.
 */
export async function stoppableStart<T extends { close(): Promise<void> }>(
  start: () => Promise<T>,
  { signal, clock }: { readonly signal: AbortSignal; readonly clock: Clock },
): Promise<T> {
  throwIfStopped(signal);
  const starting = start();
  await settledOrAborted(starting, signal);
  if (!signal.aborted) return starting;
  // The start was stopped: how it would have failed matters no more.
  const closed = starting.then((late) => late.close()).catch(() => undefined);
  await awaitAtMost(closed, { graceMs, clock });
  throw new StartStopped();
}

/** Resolves when `work` does, or after `graceMs` without it; rejects as `work` does meanwhile. */
export async function awaitAtMost(
  work: Promise<void>,
  { graceMs, clock }: { readonly graceMs: number; readonly clock: Clock },
): Promise<void> {
  const over = new AbortController();
  try {
    await Promise.race([work, sleep(clock, graceMs, over.signal)]);
  } finally {
    over.abort();
  }
}

function settledOrAborted(work: Promise<unknown>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      signal.removeEventListener('abort', end);
      resolve();
    };
    signal.addEventListener('abort', end, { once: true });
    work.then(end, end);
  });
}
