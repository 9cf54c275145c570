// A clock that advances only on request, for tests and the simulator. It never reads the machine's time, and fires
// timers in order of due time, then of creation, so that a run can be repeated exactly.

import type { Clock } from './clock.ts';

export interface ManualClock extends Clock {
  /** Advances by `byMs`, and fires all timers due in that time, including those that fired timers set. */
  advance(byMs: number): void;
  /**
   * The same, but awaits `settle` before every timer and at the end, so that promises resolved by one timer have run
   * before the next one fires. `settle` must outlast all pending promise callbacks: a turn of the event loop does.
   */
  advanceSettled(byMs: number, settle: () => Promise<void>): Promise<void>;
  /** Monotonic time of the next timer, if any. */
  nextDueMs(): number | undefined;
}

interface Waiting {
  readonly dueMs: number;
  readonly sequence: number;
  readonly fire: () => void;
}

/** `epochMs` is the initial value of `nowMs`; monotonic time starts at 0. */
export function createManualClock(epochMs = 1_767_225_600_000): ManualClock {
  const timers = new Set<Waiting>();
  let elapsedMs = 0;
  let sequence = 0;

  const next = (): Waiting | undefined => {
    let first: Waiting | undefined;
    for (const timer of timers) {
      const sooner = first === undefined || timer.dueMs < first.dueMs;
      if (sooner || (timer.dueMs === first?.dueMs && timer.sequence < first.sequence)) first = timer;
    }
    return first;
  };

  /** Fires the next timer due by `untilMs`; false when there is none. */
  const fireNext = (untilMs: number): boolean => {
    const timer = next();
    if (timer === undefined || timer.dueMs > untilMs) return false;
    timers.delete(timer);
    elapsedMs = Math.max(elapsedMs, timer.dueMs);
    timer.fire();
    return true;
  };

  return {
    nowMs: () => epochMs + elapsedMs,
    monotonicMs: () => elapsedMs,
    setTimer(delayMs, fire) {
      const timer: Waiting = { dueMs: elapsedMs + Math.max(0, delayMs), sequence: sequence++, fire };
      timers.add(timer);
      return { cancel: () => void timers.delete(timer) };
    },
    advance(byMs) {
      const untilMs = elapsedMs + byMs;
      while (fireNext(untilMs));
      elapsedMs = untilMs;
    },
    async advanceSettled(byMs, settle) {
      const untilMs = elapsedMs + byMs;
      do await settle();
      while (fireNext(untilMs));
      elapsedMs = untilMs;
    },
    nextDueMs: () => next()?.dueMs,
  };
}
