// Whether an instance may be created for the room of a task.

import { ApiError } from '../../api/errors.ts';
import { keys } from '../state/keys.ts';
import type { Snapshot } from '../state/snapshot.ts';

/**
 * Throws `InvalidRequest` unless a task of that name exists that an instance can take over, now or once the task is
 * placed.
 */
export function assertTaskToTake(snapshot: Snapshot, project: string, name: string | undefined): void {
  if (name === undefined) return;
  const phase = snapshot.get('task', keys.task(project, name))?.value.status.phase;
  if (phase === 'Pending' || phase === 'Placed') return;
  throw new ApiError(
    'InvalidRequest',
    phase === undefined
      ? `there is no task "${name}" in project ${project}; "berth task ls" lists them`
      : `task "${name}" has ended (${phase}) and holds no room; "berth reserve" creates another`,
    { field: 'spec.placement.task' },
  );
}
