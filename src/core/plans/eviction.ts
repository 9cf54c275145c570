// The mark by which a drain asks the workload of an instance to replace it, and its removal when the drain ends before that. A copy that a drain
// has stopped keeps its mark: it does not start again, and an update would wait for it.

import type { PlannedGuest } from '../../api/plans/host-plan.ts';
import { instanceStatusChange } from '../state/instance-change.ts';
import type { Change } from '../state/plan.ts';
import type { Snapshot } from '../state/snapshot.ts';

/** In the change that stops an instance. */
export function withMark(change: Change): Change {
  const { value } = change;
  if (value?.kind !== 'instance') return change;
  return { ...change, value: { ...value, status: { ...value.status, evicted: true } } };
}

/** Those whose deletion has begun leave all the same. */
export function withoutMarks(snapshot: Snapshot, guests: readonly PlannedGuest[]): Change[] {
  return guests.flatMap(({ id }) => {
    const instance = snapshot.instanceById(id);
    if (!instance?.value.status.evicted || instance.value.spec.powerState === 'stopped') return [];
    const { evicted: _, ...status } = instance.value.status;
    return [instanceStatusChange(instance, status)];
  });
}
