// The clock of one false process. When the process dies its timers never fire again, so whatever awaits one of them stands still
// for ever: that is what death is here. A paused process gets everything late.

import type { Clock, Timer } from '../../base/clock.ts';
import type { Timeline } from './timeline.ts';

export interface ProcessClock extends Clock {
  readonly alive: boolean;
  /** Something reaches the process from outside: after a true delay, not by its own clock. */
  deliver(delayMs: number, fire: () => void): Timer;
  kill(): void;
  /** Nothing of this process happens for so long. */
  pause(durationMs: number): void;
  /** Begins or ends a time in which so much else comes that it never rests, and what is asked of it waits. Its own timers are in time. */
  flood(flooded: boolean): void;
  /** Something that it is asked reaches it. */
  ask(delayMs: number, fire: () => void): void;
  /** As `monotonicMs`, without the time in which it never rested. */
  idleMs(): number;
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
/** Far below a message's time on its way. */
const heldGapMs = 0.000_001;

export function createProcessClock(timeline: Timeline, { wallOffsetMs = 0, rate = 1 }: ClockFaults = {}): ProcessClock {
  const bornMs = timeline.nowMs;
  let alive = true;
  let pausedUntilMs = 0;
  let offsetMs = wallOffsetMs;
  let held = 0;
  /** Since when it is flooded, and what was asked since. */
  let flood: { readonly sinceMs: number; readonly waiting: (() => void)[] } | undefined;
  let floodedMs = 0;

  const deliver = (delayMs: number, fire: () => void): Timer => {
    let place: number | undefined;
    let timer = timeline.schedule(delayMs, function due() {
      if (!alive) return;
      // What came during a pause comes after it in the order in which it came, also when the pause was made longer; what comes just
      // behind it waits for its turn.
      const inTurnMs = place === undefined ? pausedUntilMs + heldGapMs * held : pausedUntilMs;
      if (timeline.nowMs < inTurnMs) {
        place ??= held++;
        timer = timeline.schedule(pausedUntilMs - timeline.nowMs + heldGapMs * place, due);
      } else fire();
    });
    return { cancel: () => timer.cancel() };
  };

  return {
    get alive() {
      return alive;
    },
    nowMs: () => Math.floor(epochMs + timeline.nowMs * rate + offsetMs),
    monotonicMs: () => Math.round((timeline.nowMs - bornMs) * rate * 1000) / 1000,
    deliver,
    // A microsecond at least, as real timers: less could be lost in rounding, and time would stand still.
    setTimer: (delayMs, fire) => deliver(delayMs > 0 ? Math.max(0.001, delayMs / rate) : 0, fire),
    kill() {
      alive = false;
    },
    pause(durationMs) {
      pausedUntilMs = Math.max(pausedUntilMs, timeline.nowMs + durationMs);
    },
    flood(flooded) {
      if (flooded === (flood !== undefined)) return;
      const over = flood;
      flood = flooded ? { sinceMs: timeline.nowMs, waiting: [] } : undefined;
      floodedMs += over ? timeline.nowMs - over.sinceMs : 0;
      for (const fire of over?.waiting ?? []) deliver(0, fire);
    },
    ask(delayMs, fire) {
      deliver(delayMs, () => (flood ? void flood.waiting.push(fire) : fire()));
    },
    idleMs: () => (timeline.nowMs - bornMs - floodedMs - (flood ? timeline.nowMs - flood.sinceMs : 0)) * rate,
    jump(byMs) {
      offsetMs += byMs;
    },
  };
}
