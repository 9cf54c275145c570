// The time limits of one run, each at most once at a time. They are of this host's clock: a guest has no say.

import type { Clock, Timer } from '../../../base/clock.ts';

/**
 * begin: the runner has not come. limit: the program's time is over. kill, gone: it was asked, then made to end, and has not. artifacts: they
 * take too long. silence: the guest says nothing.
 */
export type Deadline = 'begin' | 'limit' | 'kill' | 'gone' | 'artifacts' | 'silence';

export class Deadlines {
  readonly #clock: Clock;
  readonly #reached: (deadline: Deadline) => void;
  readonly #timers = new Map<Deadline, Timer>();

  constructor(clock: Clock, reached: (deadline: Deadline) => void) {
    this.#clock = clock;
    this.#reached = reached;
  }

  /** Instead of an earlier one of that name. */
  set(deadline: Deadline, delayMs: number): void {
    this.cancel(deadline);
    const timer = this.#clock.setTimer(Math.max(0, delayMs), () => {
      this.#timers.delete(deadline);
      this.#reached(deadline);
    });
    this.#timers.set(deadline, timer);
  }

  has(deadline: Deadline): boolean {
    return this.#timers.has(deadline);
  }

  cancel(deadline: Deadline): void {
    this.#timers.get(deadline)?.cancel();
    this.#timers.delete(deadline);
  }

  cancelAll(): void {
    for (const timer of this.#timers.values()) timer.cancel();
    this.#timers.clear();
  }
}
