// The clock of one false process. When the process dies its timers never fire again, so whatever awaits one of them stands still
// for ever: that is what death is here. A paused process gets everything late.

import type { Clock } from '../base/clock.ts';
import type { Timeline } from './timeline.ts';

export interface ProcessClock extends Clock {
  readonly alive: boolean;
  kill(): void;
  /** Nothing of this process happens for so long. */
  pause(durationMs: number): void;
  /** Wall time jumps; monotonic time does not. */
  jump(byMs: number): void;
}

export interface ClockFaults {
  /** What wall time is ahead of the truth at the start. */
  readonly wallOffsetMs?: number;
  /** How fast it runs: 1.1 counts eleven seconds while ten go by. */
  readonly rate?: number;
}

/** What `nowMs` says when a run begins: 1 January 2026. */
const epochMs = 1_767_225_600_000;

export function createProcessClock(timeline: Timeline, { wallOffsetMs = 0, rate = 1 }: ClockFaults = {}): ProcessClock {
  const bornMs = timeline.nowMs;
  let alive = true;
  let pausedUntilMs = 0;
  let offsetMs = wallOffsetMs;
  return {
    get alive() {
      return alive;
    },
    nowMs: () => Math.floor(epochMs + timeline.nowMs * rate + offsetMs),
    monotonicMs: () => (timeline.nowMs - bornMs) * rate,
    setTimer(delayMs, fire) {
      let timer = timeline.schedule(delayMs / rate, function due() {
        if (!alive) return;
        if (timeline.nowMs < pausedUntilMs) timer = timeline.schedule(pausedUntilMs - timeline.nowMs, due);
        else fire();
      });
      return { cancel: () => timer.cancel() };
    },
    kill() {
      alive = false;
    },
    pause(durationMs) {
      pausedUntilMs = Math.max(pausedUntilMs, timeline.nowMs + durationMs);
    },
    jump(byMs) {
      offsetMs += byMs;
    },
  };
}
