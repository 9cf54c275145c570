// The watchdog device of a false machine: in true time it resets the machine when guests that need a lease outlive it.
// What the agent does meanwhile has no part in it.

import type { Watchdog } from '../../agent/session/agent-options.ts';
import type { Timeline } from './timeline.ts';

/** As in src/agent/watchdog/watchdog.ts. */
const lateMs = 2_000;
export const simWatchdogMs = 3_000;

export interface SimWatchdogParts {
  readonly timeline: Timeline;
  /** How fast the clock of the machine runs. */
  readonly rate: number;
  /** Whether a guest runs on the machine that needs a lease, in truth. */
  readonly guestsLeft: () => boolean;
  readonly reset: () => void;
}

export class SimWatchdog {
  readonly #parts: SimWatchdogParts;
  #timer: { cancel(): void } | undefined;

  constructor(parts: SimWatchdogParts) {
    this.#parts = parts;
  }

  /** For one life of the agent, whose clock says this. */
  device(bootMs: () => number): Watchdog {
    return {
      renewed: (untilMs) => {
        this.#timer?.cancel();
        this.#look((untilMs - bootMs()) / this.#parts.rate + lateMs + simWatchdogMs);
      },
      watch: () => {}, // it sees the guests itself
    };
  }

  #look(delayMs: number): void {
    const { timeline, guestsLeft, reset } = this.#parts;
    this.#timer = timeline.schedule(Math.max(0, delayMs), () => {
      if (guestsLeft()) return reset();
      this.#look(simWatchdogMs); // an agent may begin one late
    });
  }
}
