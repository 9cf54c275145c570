// What the parts of the job controller share: the instance of an attempt, the change of a status, the pause to the next look.

import type { Instance } from '../../../api/resources/instance.ts';
import type { Job, JobAttempt, JobStatus } from '../../../api/resources/job.ts';
import { deleteInstance } from '../../operations/instance.ts';
import type { Context } from '../../state/context.ts';
import { keys } from '../../state/keys.ts';
import type { Change, Plan } from '../../state/plan.ts';
import type { Entry, Snapshot } from '../../state/snapshot.ts';
import { sleepMsMax } from '../controller.ts';

export function again(afterMs: number): Plan {
  return { changes: [], requeueAfterMs: Math.min(Math.max(0, afterMs), sleepMsMax) };
}

export function put(entry: Entry<Job>, status: JobStatus): Change {
  return { key: entry.key, ifRevision: entry.revision, value: { ...entry.value, status } };
}

/** Undefined: it is gone, or its name belongs to another. */
export function instanceOf(
  snapshot: Snapshot,
  { metadata }: Job,
  attempt: JobAttempt | undefined,
): Entry<Instance> | undefined {
  if (attempt === undefined) return undefined;
  const entry = snapshot.get('instance', keys.instance(metadata.project, attempt.instance));
  return entry?.value.metadata.id === attempt.instanceId ? entry : undefined;
}

/** Nothing when its deletion is requested already. */
export function removalOf(snapshot: Snapshot, instance: Entry<Instance> | undefined, ctx: Context): readonly Change[] {
  if (instance === undefined || instance.value.metadata.deletionRequestedAtMs !== undefined) return [];
  return deleteInstance(snapshot, instance.value.metadata, ctx).plan.changes;
}
