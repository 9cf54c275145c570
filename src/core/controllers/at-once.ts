// At once: a new instance gets its host in the Plan that creates it when no other instance waits before it, because one
// Plan costs half of two. It decides what the placement controller would decide next, and leaves less simple cases to
// that controller.

import type { Decision } from '../operations/decision.ts';
import { gateOf, limitsOn } from '../queue/limits.ts';
import { limitReached, queueOf } from '../queue/queue.ts';
import { isWaiting } from '../queue/waiting.ts';
import { requestOf } from '../scheduler/request.ts';
import { schedule } from '../scheduler/schedule.ts';
import { taskOf } from '../scheduler/take-over.ts';
import type { Context } from '../state/context.ts';
import type { Snapshot } from '../state/snapshot.ts';
import { bind } from './bind.ts';

/** `created`, plus the placement of the new instance where that is possible now. Everything else is unchanged. */
export function placedAtOnce(snapshot: Snapshot, created: Decision, ctx: Context): Decision {
  const { plan } = created;
  const made = plan.changes.find(({ key, ifRevision }) => key === created.key && ifRevision === 0);
  const instance = made?.value;
  if (instance?.kind !== 'instance' || !isWaiting(instance) || plan.conditions) return created;
  // Both Plans would write the record of a volume.
  if (instance.spec.gang !== undefined || taskOf(instance) !== undefined || instance.spec.volumes) return created;
  if (queueOf(snapshot).size > 0) return created; // earlier instances come first
  const limits = limitsOn(snapshot, ctx.policy, instance);
  if (limitReached(snapshot, limits)) return created;
  const request = requestOf(snapshot, instance);
  const placed = schedule(snapshot, request);
  if (!placed.placed) return created;
  const entry = { key: created.key, value: instance, revision: 0 };
  const bound = bind(snapshot, [{ instance: entry, request, placed }], { gates: limits.map(gateOf) }, ctx);
  const others = plan.changes.filter((change) => change !== made);
  return { ...created, plan: { ...bound, changes: [...bound.changes, ...others] } };
}
