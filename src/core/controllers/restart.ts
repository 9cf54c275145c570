// restart: a failed instance with policy OnFailure waits for its delay, then is placed again: new disk, any host
// (S4.6).

import { type Instance, isToBeOn } from '../../api/resources/instance.ts';
import { conditionOf, withConditions } from '../state/conditions.ts';
import type { Context } from '../state/context.ts';
import { eventChange } from '../state/events.ts';
import { mayRunUnseen } from '../state/guest-phase.ts';
import { instanceStatusChange } from '../state/instance-change.ts';
import { emptyPlan, type Plan } from '../state/plan.ts';
import type { Entry } from '../state/snapshot.ts';
import { type Controller, keysOfKind } from './controller.ts';

export const restart: Controller = {
  name: 'restart',
  watches: ['instance'],
  wakes: ({ key, after }) => (after?.kind === 'instance' && wantsRestart(after) ? [key] : []),
  keys: (snapshot) => keysOfKind(snapshot, 'instance'),
  reconcile(snapshot, key, ctx) {
    const instance = snapshot.get('instance', key);
    if (!instance || !wantsRestart(instance.value)) return emptyPlan;
    const { restartDelayMs } = ctx.policy;
    const waitMs = (instance.value.status.failedAtMs ?? 0) + restartDelayMs - ctx.nowMs;
    // The time of the failure may come from a clock far ahead of this one, or this clock may have jumped: do not wait
    // for that.
    if (waitMs <= 0 || waitMs > 2 * restartDelayMs) return placeAnew(instance, ctx);
    return { changes: [], requeueAfterMs: Math.min(waitMs, restartDelayMs) };
  },
};

function wantsRestart(instance: Instance): boolean {
  const { spec, status, metadata } = instance;
  if (status.phase !== 'Failed' || spec.restartPolicy !== 'OnFailure' || !isToBeOn(spec)) return false;
  if (metadata.deletionRequestedAtMs !== undefined) return false;
  return !(spec.exclusive && mayRunUnseen(instance)); // it waits for its host, for the host's removal, or for an operator
}

function placeAnew(instance: Entry<Instance>, ctx: Context): Plan {
  const { status } = instance.value;
  const { host, guest: _guest, report: _report, assigned: _assigned, ...kept } = status;
  const restartCount = status.restartCount + 1;
  const message = `restart ${restartCount} after: ${conditionOf(status.conditions, 'Running')?.message ?? 'a failure'}`;
  return {
    changes: [
      instanceStatusChange(instance, {
        ...kept,
        phase: 'Pending',
        restartCount,
        conditions: withConditions(
          status.conditions,
          [
            { type: 'Scheduled', status: 'False', reason: 'Restarting', message },
            { type: 'Running', status: 'False', reason: 'Restarting', message },
          ],
          ctx.nowMs,
        ),
      }),
      eventChange(instance.value, { reason: 'Restarting', message, ...(host === undefined ? {} : { host }) }, ctx),
    ],
  };
}
