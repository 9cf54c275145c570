// At once, for tasks: the Plan that creates a task also places it, or says why it fails: one Plan costs half of two, and
// its caller learns the answer. It decides what the task controller would decide next.

import type { Decision } from '../../operations/decision.ts';
import type { Context } from '../../state/context.ts';
import type { Snapshot } from '../../state/snapshot.ts';
import { placeTask } from './task.ts';

/** `created`, plus the first decision about the new task. Everything else is unchanged. */
export function taskAtOnce(snapshot: Snapshot, created: Decision, ctx: Context): Decision {
  const { plan } = created;
  const made = plan.changes.find(({ key, ifRevision }) => key === created.key && ifRevision === 0);
  const task = made?.value;
  if (task?.kind !== 'task' || task.status.phase !== 'Pending' || plan.conditions) return created;
  const { changes, conditions } = placeTask(snapshot, { key: created.key, value: task, revision: 0 }, ctx);
  if (changes.length === 0) return created;
  // Its end passes the same gate as its beginning; and of two events one would only cost.
  const written = new Set(changes.map(({ key }) => key));
  const others = plan.changes.filter(({ key, value }) => !written.has(key) && value?.kind !== 'event');
  return {
    ...created,
    plan: { changes: [...changes, ...others], ...(conditions === undefined ? {} : { conditions }) },
  };
}
