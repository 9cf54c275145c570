// Whether an update goes on. What counts is the best that it has come to: copies that come and go in a loop are none.

import type { Workload, WorkloadStatus } from '../../api/resources/workload.ts';
import type { Pass } from './pass.ts';

type Progress = NonNullable<WorkloadStatus['progress']>;

export function progressOf({ progress }: WorkloadStatus, { counts, old }: Pass, nowMs: number): Progress {
  const now = { updated: counts.updated, ready: counts.ready, available: counts.available, old };
  if (progress === undefined) return { ...now, atMs: nowMs };
  const best = {
    updated: Math.max(progress.updated, now.updated),
    ready: Math.max(progress.ready, now.ready),
    available: Math.max(progress.available, now.available),
    old: Math.min(progress.old, now.old),
  };
  const isBetter =
    best.updated > progress.updated ||
    best.ready > progress.ready ||
    best.available > progress.available ||
    best.old < progress.old;
  return isBetter ? { ...best, atMs: nowMs } : progress;
}

/** Its deadline has passed since the last progress. A pause stops the clock. */
export function hasStalled({ spec, status }: Workload, pass: Pass, wanted: number, nowMs: number): boolean {
  if (spec.paused || status.progress === undefined) return false;
  if (pass.old === 0 && pass.counts.available === wanted && pass.counts.copies === wanted) return false;
  return nowMs - progressOf(status, pass, nowMs).atMs >= spec.strategy.progressDeadlineMs;
}
