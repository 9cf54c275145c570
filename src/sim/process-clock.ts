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

/** What `nowMs` says when a run begins: 1 January 2026. */
const epochMs = 1_767_225_600_000;

export function createProcessClock(timeline: Timeline, wallOffsetMs = 0): ProcessClock {
  const bornMs = timeline.nowMs;
  let alive = true;
  let pausedUntilMs = 0;
  let offsetMs = wallOffsetMs;
  return {
    get alive() {
      return alive;
    },
    nowMs: () => epochMs + timeline.nowMs + offsetMs,
    monotonicMs: () => timeline.nowMs - bornMs,
    setTimer(delayMs, fire) {
      let timer = timeline.schedule(delayMs, function due() {
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
