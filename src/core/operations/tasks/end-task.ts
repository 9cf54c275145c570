// How tasks change and end: one way for each ending, whether its time is over, it is released, or there is no room.

import type { Task, TaskStatus } from '../../../api/resources/task.ts';
import { releaseAllOf } from '../../ledger/ledger.ts';
import { dischargeQuota } from '../../queue/quotas.ts';
import { type NewCondition, withConditions } from '../../state/conditions.ts';
import type { Context } from '../../state/context.ts';
import { eventChange } from '../../state/events.ts';
import type { Change } from '../../state/plan.ts';
import type { Entry, Snapshot } from '../../state/snapshot.ts';

interface Ending {
  readonly phase: 'Expired' | 'Failed';
  readonly reason: string;
  readonly message: string;
}

/** Its room is released and its charge ends; the record stays for a while, so that its result can still be read. */
export function endTask(
  snapshot: Snapshot,
  entry: Entry<Task>,
  { phase, reason, message }: Ending,
  ctx: Context,
): Change[] {
  const status: TaskStatus = { ...entry.value.status, phase, endedAtMs: ctx.nowMs };
  return [
    ...taskChange(entry, status, { type: 'Scheduled', status: 'False', reason, message }, ctx),
    ...releaseAllOf(snapshot, entry.value.metadata.id),
    ...dischargeQuota(snapshot, entry.value),
  ];
}

/** A new status, with the condition that tells why, and an event. */
export function taskChange(entry: Entry<Task>, status: TaskStatus, condition: NewCondition, ctx: Context): Change[] {
  const { reason, message } = condition;
  const type = status.phase === 'Placed' || status.phase === 'Expired' ? 'Normal' : 'Warning';
  const host = status.host === undefined ? {} : { host: status.host };
  const conditions = withConditions(status.conditions, [condition], ctx.nowMs);
  return [
    { key: entry.key, ifRevision: entry.revision, value: { ...entry.value, status: { ...status, conditions } } },
    eventChange(entry.value, { type, reason, message, ...host }, ctx),
  ];
}
