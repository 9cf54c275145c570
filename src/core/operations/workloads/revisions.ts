// The templates that a workload had, each under a number. The newest ten are kept, and the newest that was wholly available, to which a
// failed update goes back.

import type { Workload } from '../../../api/resources/workload.ts';
import type { Context } from '../../state/context.ts';
import { keys } from '../../state/keys.ts';
import type { Change } from '../../state/plan.ts';
import type { WorkloadRevision } from '../../state/records.ts';
import type { Entry, Snapshot } from '../../state/snapshot.ts';

/** Revisions of a workload that can be gone back to, besides the stable one. */
const keptMost = 10;

/** At most as many of a store that kept all of them are deleted in one Plan. */
const droppedMax = 200;

/** The revisions that are kept, the oldest first. */
export function historyOf(snapshot: Snapshot, workload: Workload): WorkloadRevision[] {
  const { revision, stableRevision = revision } = workload.status;
  const oldest = oldestKept(revision);
  const numbers = stableRevision < oldest ? [stableRevision] : [];
  for (let number = oldest; number <= revision; number++) numbers.push(number);
  return numbers.flatMap((number) => {
    const found = revisionEntry(snapshot, workload, number)?.value;
    return found?.workloadId === workload.metadata.id ? [found] : [];
  });
}

/** Records the present template. */
export function revisionOf(snapshot: Snapshot, workload: Workload, ctx: Context): Change {
  const { project, name, id } = workload.metadata;
  const { revision: number } = workload.status;
  return {
    key: keys.workloadRevision(project, name, number),
    ifRevision: revisionEntry(snapshot, workload, number)?.revision ?? 0,
    value: {
      kind: 'workloadRevision',
      ...{ project, name, workloadId: id, number },
      template: workload.spec.template,
      createdAtMs: ctx.nowMs,
    },
  };
}

/** Deletes those that are neither among the newest ten nor stable any more. */
export function withoutOldRevisions(snapshot: Snapshot, workload: Workload): Change[] {
  const { revision, stableRevision } = workload.status;
  return olderThan(snapshot, workload, oldestKept(revision))
    .filter(({ value }) => value.number !== stableRevision)
    .slice(-droppedMax)
    .map(deleted);
}

/** Deletes the former stable revision when another has become stable and it is old. */
export function withoutFormerStable(
  snapshot: Snapshot,
  before: Workload,
  stableRevision: number | undefined,
): Change[] {
  const former = before.status.stableRevision;
  if (former === undefined || former === stableRevision || former >= oldestKept(before.status.revision)) return [];
  const entry = revisionEntry(snapshot, before, former);
  return entry ? [deleted(entry)] : [];
}

export function withoutRevisions(snapshot: Snapshot, workload: Workload): Change[] {
  const { revision, stableRevision } = workload.status;
  const older = olderThan(snapshot, workload, revision + 1);
  const stable = stableRevision === undefined ? undefined : revisionEntry(snapshot, workload, stableRevision);
  const all = stable && older.every(({ key }) => key !== stable.key) ? [...older, stable] : older;
  return all.map(deleted);
}

function oldestKept(revision: number): number {
  return Math.max(1, revision - keptMost + 1);
}

/** Those below `number`, down to the first that is missing. */
function olderThan(snapshot: Snapshot, workload: Workload, number: number): Entry<WorkloadRevision>[] {
  const found: Entry<WorkloadRevision>[] = [];
  for (let at = number - 1; at >= 1; at--) {
    const entry = revisionEntry(snapshot, workload, at);
    if (!entry) break;
    found.push(entry);
  }
  return found;
}

function revisionEntry(
  snapshot: Snapshot,
  { metadata: { project, name } }: Workload,
  number: number,
): Entry<WorkloadRevision> | undefined {
  return snapshot.get('workloadRevision', keys.workloadRevision(project, name, number));
}

function deleted({ key, revision }: Entry<WorkloadRevision>): Change {
  return { key, ifRevision: revision, value: null };
}
