// For tests: a spare as a provisioner gets it, and a clock for its waits.

import type { Clock } from '../../base/clock.ts';
import { system, systemClock } from '../../base/system.ts';
import type { SpareRun, SpareWork } from './provisioner.ts';

export function testWork(id: string, changes: Partial<SpareWork> = {}): SpareWork {
  return {
    id,
    attempt: 1,
    name: 'web',
    project: 'default',
    createdAtMs: Date.parse('2026-11-20T10:00:00Z'),
    host: { name: 'rack1', address: '10.0.0.1' },
    cpus: 4,
    memoryMiB: 1024,
    diskGiB: 20,
    variables: {},
    ...changes,
  };
}

export interface TestRun extends SpareRun {
  readonly notes: string[];
}

export function testRun({ resumed = false, signal = new AbortController().signal }: Partial<SpareRun> = {}): TestRun {
  const notes: string[] = [];
  return { resumed, signal, notes, progress: (note) => void notes.push(note) };
}

/** Waits take no time; `waited` counts what they would have taken. The limit of a single call, 15 s, never comes. */
export class TestWaits {
  elapsedMs = 0;
  /** Called at each wait. */
  onWait: () => void = () => {};
  readonly clock: Clock = {
    nowMs: () => systemClock.nowMs(),
    monotonicMs: () => this.elapsedMs,
    setTimer: (delayMs, fire) => {
      if (delayMs === 15_000) return { cancel: () => {} };
      this.elapsedMs += delayMs;
      this.onWait();
      system.afterTurn(fire);
      return { cancel: () => {} };
    },
  };
}
