// A job that has ended: its instance goes, after a hold if it failed; then its record, when that is old, was asked for,
// or is one too many.

import { isFinal, type Job } from '../../../api/resources/job.ts';
import type { Context } from '../../state/context.ts';
import { emptyPlan, type Plan } from '../../state/plan.ts';
import type { Entry, Snapshot } from '../../state/snapshot.ts';
import { again, instanceOf, put, removalOf } from './job-parts.ts';

/** A job that has ended: removes what is left of it, and its record when that is old or was asked for. */
export function afterwards(snapshot: Snapshot, entry: Entry<Job>, ctx: Context): Plan {
  const { metadata, status } = entry.value;
  const instance = instanceOf(snapshot, entry.value, status.attempts.at(-1));
  const deleting = metadata.deletionRequestedAtMs !== undefined;
  if (status.heldUntilMs !== undefined) {
    const leftMs = status.heldUntilMs - ctx.nowMs;
    if (leftMs > 0 && instance !== undefined && !deleting) return again(leftMs);
    const { heldUntilMs: _heldUntilMs, ...kept } = status;
    return { changes: [put(entry, kept), ...removalOf(snapshot, instance, ctx)] };
  }
  const removal = removalOf(snapshot, instance, ctx);
  if (removal.length > 0) return { changes: removal };
  if (instance !== undefined) return emptyPlan; // its end wakes this
  const leftMs = (status.endedAtMs ?? 0) + ctx.policy.jobsKeptMs - ctx.nowMs;
  if (leftMs > 0 && isStillNeeded(entry.value)) return again(leftMs);
  return deleting || leftMs <= 0 ? removeRecord(entry) : again(leftMs);
}

/** Its result has not been published, or its forge has not been notified of its end, so its record stays. */
function isStillNeeded({ status: { result, commitStatus } }: Job): boolean {
  return commitStatus?.final === false || result?.exchange === 'waiting' || result?.reply === 'waiting';
}

function removeRecord({ key, revision }: Entry<Job>): Plan {
  return { changes: [{ key, ifRevision: revision, value: null }] };
}

/** Under this key, which belongs to no job, the number of jobs is checked once per full pass. */
export const surplus = 'jobs/';
/** As many as the committer joins in one durable write. */
const removedAtOnceMax = 512;

/** Deletes the jobs that ended first, beyond `jobsMax`. */
export function removeSurplus(snapshot: Snapshot, ctx: Context): Plan {
  const count = snapshot.count('job') - ctx.policy.jobsMax;
  if (count <= 0) return emptyPlan;
  const ended = [...snapshot.list('job')].filter(
    ({ value }) =>
      isFinal(value.status.phase) &&
      value.status.heldUntilMs === undefined &&
      !isStillNeeded(value) &&
      instanceOf(snapshot, value, value.status.attempts.at(-1)) === undefined,
  );
  ended.sort((a, b) => (a.value.status.endedAtMs ?? 0) - (b.value.status.endedAtMs ?? 0));
  const removed = ended.slice(0, Math.min(count, removedAtOnceMax));
  const changes = removed.map(({ key, revision }) => ({ key, ifRevision: revision, value: null }));
  return removed.length === removedAtOnceMax ? { changes, requeueAfterMs: 0 } : { changes };
}
