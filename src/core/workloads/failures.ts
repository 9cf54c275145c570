// Copies that failed by themselves: the next one of the same ordinal waits, twice as long each time, as Kubernetes restarts containers.

import type { WorkloadStatus } from '../../api/resources/workload.ts';
import type { Copy } from './copy.ts';

export type Failures = WorkloadStatus['failures'];

const delayMsMin = 10_000;
const delayMsMax = 300_000;
/** A copy that lived for so long has made up for those before it. */
const healthyMs = 600_000;
/** The failures of this many ordinals are kept; the oldest ones are dropped. */
const rememberedMax = 1_000;

export function notBeforeMs(failures: Failures, ordinal: number): number | undefined {
  const failure = failures.find((each) => each.ordinal === ordinal);
  return failure && failure.atMs + Math.min(delayMsMax, delayMsMin * 2 ** Math.min(failure.count - 1, 30));
}

/** With the copies that have failed by themselves since. */
export function withFailures(known: Failures, copies: readonly Copy[], nowMs: number): Failures {
  const failed = copies.filter(({ over, lost, leaving }) => over && !lost && !leaving);
  const late = known.some(({ atMs }) => nowMs - atMs > healthyMs + delayMsMax);
  if (failed.length === 0 && !late) return known;
  const byOrdinal = new Map(known.map((failure) => [failure.ordinal, failure]));
  for (const [ordinal, { atMs }] of byOrdinal) if (nowMs - atMs > healthyMs + delayMsMax) byOrdinal.delete(ordinal);
  for (const { ordinal, createdAtMs } of failed) {
    const before = byOrdinal.get(ordinal);
    const count = before && nowMs - createdAtMs < healthyMs ? before.count + 1 : 1;
    byOrdinal.set(ordinal, { ordinal, count, atMs: nowMs });
  }
  return [...byOrdinal.values()].slice(-rememberedMax);
}
