// restart: a failed instance with policy OnFailure waits its delay, then is placed anew: fresh disk, any host (S4.6).

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
    // Whose clock said when it failed may be far ahead of ours, or ours have jumped: that is not waited for.
    if (waitMs <= 0 || waitMs > 2 * restartDelayMs) return placeAnew(instance, ctx);
    return { changes: [], requeueAfterMs: Math.min(waitMs, restartDelayMs) };
  },
};

function wantsRestart(instance: Instance): boolean {
  const { spec, status, metadata } = instance;
  if (status.phase !== 'Failed' || spec.restartPolicy !== 'OnFailure' || !isToBeOn(spec)) return false;
  if (metadata.deletionRequestedAtMs !== undefined) return false;
  return !(spec.exclusive && mayRunUnseen(instance)); // it waits until its host is back or removed, or for a person
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
