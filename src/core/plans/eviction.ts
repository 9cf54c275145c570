// The mark by which a drain asks the workload of an instance to replace it, and its removal when the drain ends before that.

import type { PlannedGuest } from '../../api/plans/host-plan.ts';
import { instanceStatusChange } from '../state/instance-change.ts';
import type { Change } from '../state/plan.ts';
import type { Snapshot } from '../state/snapshot.ts';

/** Those whose deletion has begun leave all the same. */
export function withoutMarks(snapshot: Snapshot, guests: readonly PlannedGuest[]): Change[] {
  return guests.flatMap(({ id }) => {
    const instance = snapshot.instanceById(id);
    if (!instance?.value.status.evicted) return [];
    const { evicted: _, ...status } = instance.value.status;
    return [instanceStatusChange(instance, status)];
  });
}
