// restart: an instance whose guest failed, or with policy Always ended, waits for its delay, then starts again: on a new disk and any host
// (S4.6), or on the disk it has. The delay doubles with each restart in a row; a guest that ran long enough begins a new row.

import { type Instance, type InstanceStatus, restartDefaults } from '../../api/resources/instance.ts';
import { isToRestart } from '../../api/instances/restart-rule.ts';
import { againOf } from '../operations/start-again.ts';
import { conditionOf, withConditions } from '../state/conditions.ts';
import type { Context, Policy } from '../state/context.ts';
import { eventChange } from '../state/events.ts';
import { hostLost, mayRunUnseen } from '../state/guest-phase.ts';
import { onHostLossOf } from '../state/host-loss.ts';
import { instanceStatusChange } from '../state/instance-change.ts';
import { emptyPlan, type Plan } from '../state/plan.ts';
import type { Entry, Snapshot } from '../state/snapshot.ts';
import { unplacedStatus } from '../state/unplaced-status.ts';
import { type Controller, keysOfKind } from './controller.ts';

export const restart: Controller = {
  name: 'restart',
  watches: ['instance'],
  wakes: ({ key, after }, snapshot) => (after?.kind === 'instance' && wantsRestart(snapshot, after) ? [key] : []),
  keys: (snapshot) => keysOfKind(snapshot, 'instance'),
  reconcile(snapshot, key, ctx) {
    const instance = snapshot.get('instance', key);
    if (!instance || !wantsRestart(snapshot, instance.value)) return emptyPlan;
    const { limit } = instance.value.spec.restart ?? {};
    if (limit !== undefined && restartsInRow(instance.value) >= limit) return giveUp(instance, limit, ctx);
    const restartDelayMs = restartDelayOf(instance.value, ctx.policy);
    const waitMs = (instance.value.status.failedAtMs ?? 0) + restartDelayMs - ctx.nowMs;
    // The time of the failure may come from a clock far ahead of this one, or this clock may have jumped: do not wait
    // for that.
    if (waitMs <= 0 || waitMs > 2 * restartDelayMs) return startAnew(snapshot, instance, ctx);
    return { changes: [], requeueAfterMs: Math.min(waitMs, restartDelayMs) };
  },
};

function wantsRestart(snapshot: Snapshot, instance: Instance): boolean {
  if (!isToRestart(instance)) return false;
  // With a rule for the loss of its host, that rule decides: controllers/hosts/host-loss.ts.
  const reason = conditionOf(instance.status.conditions, 'Running')?.reason;
  if (reason === hostLost && onHostLossOf(snapshot, instance) !== undefined) return false;
  // It waits for its host, for the host's removal, or for an operator. A disk that is to be kept is on that host as well.
  const { exclusive, restart: how } = instance.spec;
  return !((exclusive || how?.disk === 'kept') && mayRunUnseen(instance));
}

/** Before the next restart of an instance that has ended. */
export function restartDelayOf(instance: Instance, policy: Policy): number {
  const { delayMs = policy.restartDelayMs, delayMsMax = policy.restartDelayMsMax } = instance.spec.restart ?? {};
  const most = Math.max(delayMs, delayMsMax);
  return Math.min(delayMs * 2 ** Math.min(restartsInRow(instance), doublingsMax), most);
}

const doublingsMax = 30;

/** Restarts since its guest last ran long enough. */
function restartsInRow({ spec, status }: Instance): number {
  const { runningAtMs, failedAtMs, restarts } = status;
  if (restarts === undefined) return 0;
  const { healthyMs = restartDefaults.healthyMs } = spec.restart ?? {};
  const ran = runningAtMs === undefined || failedAtMs === undefined ? 0 : failedAtMs - runningAtMs;
  return ran >= healthyMs ? 0 : restarts.inRow;
}

function giveUp(instance: Entry<Instance>, limit: number, ctx: Context): Plan {
  const { status } = instance.value;
  const message = `not restarted: its limit of ${limit} restarts in a row is reached; "berth start" begins again`;
  const restarts = { inRow: restartsInRow(instance.value), exhausted: true };
  return {
    changes: [
      instanceStatusChange(instance, { ...status, restarts }),
      eventChange(instance.value, { type: 'Warning', reason: 'RestartLimit', message }, ctx),
    ],
  };
}

function startAnew(snapshot: Snapshot, instance: Entry<Instance>, ctx: Context): Plan {
  const { value } = instance;
  const restartCount = value.status.restartCount + 1;
  const counted: Instance = {
    ...value,
    status: { ...value.status, restartCount, restarts: { inRow: restartsInRow(value) + 1 } },
  };
  const message = `restart ${restartCount} after: ${conditionOf(value.status.conditions, 'Running')?.message ?? 'a failure'}`;
  const again = value.spec.restart?.disk === 'kept' ? againOf(snapshot, counted, value.spec, ctx) : undefined;
  const status =
    again !== undefined && 'status' in again
      ? again.status
      : placedAnew(counted.status, { reason: 'Restarting', message }, ctx);
  const { host } = value.status;
  return {
    changes: [
      instanceStatusChange(instance, status),
      eventChange(value, { reason: 'Restarting', message, ...(host === undefined ? {} : { host }) }, ctx),
    ],
  };
}

/** Of an instance that is to be placed again, on any host. */
export function placedAnew(
  status: InstanceStatus,
  why: { readonly reason: string; readonly message: string },
  ctx: Context,
): InstanceStatus {
  return {
    ...unplacedStatus(status),
    phase: 'Pending',
    conditions: withConditions(
      status.conditions,
      [
        { type: 'Scheduled', status: 'False', ...why },
        { type: 'Running', status: 'False', ...why },
      ],
      ctx.nowMs,
    ),
  };
}
