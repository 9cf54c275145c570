// Wait: the Plan that records why an instance is not placed. Written only when the reason changes, not when only the
// counts of hosts do, so that waiting costs no writes.

import type { Instance, InstanceStatus } from '../../api/resources/instance.ts';
import { conditionOf, withConditions } from '../state/conditions.ts';
import type { Context } from '../state/context.ts';
import { eventChange } from '../state/events.ts';
import { instanceStatusChange } from '../state/instance-change.ts';
import { emptyPlan, type Plan } from '../state/plan.ts';
import type { Entry } from '../state/snapshot.ts';

export interface WaitReason {
  /** A code for programs. */
  readonly reason: 'Unschedulable' | 'ConcurrencyLimit' | 'CapacityMap' | 'GangIncomplete' | 'MakingRoom';
  readonly message: string;
}

/** `nomination`: the host reserved from now on; null: none any more; undefined: unchanged. */
export function wait(
  instance: Entry<Instance>,
  { reason, message }: WaitReason,
  ctx: Context,
  nomination?: InstanceStatus['nomination'] | null,
): Plan {
  const { status } = instance.value;
  const known = conditionOf(status.conditions, 'Scheduled');
  const told = known?.status === 'False' && known.reason === reason && sameReasons(known.message, message);
  if (told && nomination === undefined) return emptyPlan;
  const conditions = told
    ? status.conditions
    : withConditions(status.conditions, [{ type: 'Scheduled', status: 'False', reason, message }], ctx.nowMs);
  const { nomination: before, ...kept } = status;
  const after = nomination === undefined ? before : (nomination ?? undefined);
  return {
    changes: [
      instanceStatusChange(instance, { ...kept, ...(after === undefined ? {} : { nomination: after }), conditions }),
      ...(told ? [] : [eventChange(instance.value, { type: 'Warning', reason, message }, ctx)]),
    ],
  };
}

/** `0 of 12 hosts: 7 InsufficientMemory, 5 DriverMissing` equals the same text with other numbers. */
export function sameReasons(a: string, b: string): boolean {
  return a === b || reasonsIn(a) === reasonsIn(b);
}

function reasonsIn(message: string): string {
  const reasons = [...message.matchAll(/\b\d+ ([A-Z]\w+)/g)].map(([, reason]) => reason);
  return reasons.length === 0 ? message : reasons.sort().join();
}
