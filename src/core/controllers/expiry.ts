// expiry: deletes an instance when its time is over, and says so some time before. Its owner may extend the time until then.
//
//   created ──some time before──▶ event Expiring ──its time──▶ event Expired, deletion requested

import { expiryOf } from '../../api/instances/lifetime.ts';
import type { Instance } from '../../api/resources/instance.ts';
import { deleteInstance } from '../operations/instance.ts';
import type { Context } from '../state/context.ts';
import { eventChange } from '../state/events.ts';
import { instanceStatusChange } from '../state/instance-change.ts';
import { emptyPlan, type Plan } from '../state/plan.ts';
import type { Entry } from '../state/snapshot.ts';
import { type Controller, keysOfKind, sleepMsMax } from './controller.ts';

/** Time for a person to extend it; of a short life a tenth. */
const noticeMsMax = 600_000;

export const expiry: Controller = {
  name: 'expiry',
  watches: ['instance'],
  wakes: ({ key, after }) => (after?.kind === 'instance' && expiresAt(after) !== undefined ? [key] : []),
  keys: (snapshot) => keysOfKind(snapshot, 'instance'),
  reconcile(snapshot, key, ctx) {
    const instance = snapshot.get('instance', key);
    const expiresAtMs = instance && expiresAt(instance.value);
    if (instance === undefined || expiresAtMs === undefined) return emptyPlan;
    const { metadata, status } = instance.value;
    if (ctx.nowMs >= expiresAtMs) {
      const { plan } = deleteInstance(snapshot, metadata, ctx);
      const message = 'its time is over, and it is deleted';
      return { ...plan, changes: [...plan.changes, eventChange(instance.value, { reason: 'Expired', message }, ctx)] };
    }
    const noticeAtMs = expiresAtMs - Math.min(noticeMsMax, (expiresAtMs - metadata.createdAtMs) / 10);
    if (ctx.nowMs < noticeAtMs) return again(noticeAtMs - ctx.nowMs);
    return status.expiryToldMs === expiresAtMs ? again(expiresAtMs - ctx.nowMs) : tell(instance, expiresAtMs, ctx);
  },
};

function expiresAt(instance: Instance): number | undefined {
  return instance.metadata.deletionRequestedAtMs === undefined ? expiryOf(instance) : undefined;
}

const again = (afterMs: number): Plan => ({ changes: [], requeueAfterMs: Math.min(Math.ceil(afterMs), sleepMsMax) });

/** The change wakes this controller again. */
function tell(instance: Entry<Instance>, expiresAtMs: number, ctx: Context): Plan {
  const { metadata, status } = instance.value;
  const message = `it is deleted at ${new Date(expiresAtMs).toISOString()}; "berth extend ${metadata.name} 1h" gives it more time`;
  return {
    changes: [
      instanceStatusChange(instance, { ...status, expiryToldMs: expiresAtMs }),
      eventChange(instance.value, { type: 'Warning', reason: 'Expiring', message }, ctx),
    ],
  };
}
