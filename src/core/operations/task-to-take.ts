// Whether an instance may be made for the room of a task.

import { ApiError } from '../../api/errors.ts';
import { keys } from '../state/keys.ts';
import type { Snapshot } from '../state/snapshot.ts';

/** Throws `InvalidRequest` when there is no task of that name that an instance could take over, now or once it is placed. */
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
