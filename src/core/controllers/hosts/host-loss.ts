// host-loss: what instances of a host that is down asked for: a copy elsewhere, patience, or a final failure. An
// exclusive instance starts elsewhere only with a recorded proof that its first copy runs no more.

import { hostDown } from '../../../api/instances/restart-rule.ts';
import type { Host } from '../../../api/resources/host.ts';
import type { HostDown } from '../../../api/resources/host-state.ts';
import { type Instance, isToBeOn } from '../../../api/resources/instance.ts';
import { conditionOf, withConditions } from '../../state/conditions.ts';
import type { Context } from '../../state/context.ts';
import { eventChange } from '../../state/events.ts';
import { hostLost } from '../../state/guest-phase.ts';
import { onHostLossOf, proofFor } from '../../state/host-loss.ts';
import { instanceStatusChange } from '../../state/instance-change.ts';
import { keys } from '../../state/keys.ts';
import { emptyPlan, type Plan } from '../../state/plan.ts';
import type { Entry } from '../../state/snapshot.ts';
import { type Controller, keysOfKind } from '../controller.ts';
import { instancesOn } from './lost-host.ts';
import { placedAnew } from '../restart.ts';

export const hostLoss: Controller = {
  name: 'host-loss',
  watches: ['instance', 'host'],
  wakes({ key, before, after }, snapshot) {
    if (after?.kind === 'instance') return isLost(after) ? [key] : [];
    if (after?.kind !== 'host' || !after.status.down) return [];
    return before?.kind === 'host' && before.status.down === after.status.down
      ? []
      : instancesOn(snapshot, after.metadata.name);
  },
  keys: (snapshot) => keysOfKind(snapshot, 'instance'),
  reconcile(snapshot, key, ctx) {
    const instance = snapshot.get('instance', key);
    if (!instance || !isLost(instance.value)) return emptyPlan;
    const host = snapshot.get('host', keys.host(instance.value.status.host ?? ''));
    const down = host?.value.status.down;
    if (!host || !down) return emptyPlan;
    const heldMs = (down.heldUntilMs ?? 0) - ctx.nowMs;
    switch (onHostLossOf(snapshot, instance.value)) {
      case 'replace':
        if (heldMs > 0) return { changes: [], requeueAfterMs: Math.min(heldMs, heldLookMs) };
        return replace({ instance, host, down }, ctx);
      case 'fail':
        return fail({ instance, host }, ctx);
      default:
        return emptyPlan;
    }
  },
};

/** The clock of another leader may be ahead. */
const heldLookMs = 10_000;

/** It has failed with its host, and its owner wants it to run. */
export function isLost({ metadata, spec, status }: Instance): boolean {
  return (
    status.phase === 'Failed' &&
    isToBeOn(spec) &&
    metadata.deletionRequestedAtMs === undefined &&
    conditionOf(status.conditions, 'Running')?.reason === hostLost
  );
}

function replace(
  { instance, host, down }: { instance: Entry<Instance>; host: Entry<Host>; down: HostDown },
  ctx: Context,
): Plan {
  const { value } = instance;
  const proof = proofFor(value, down);
  if (value.spec.exclusive && !proof) return emptyPlan;
  const { status } = value;
  const name = host.value.metadata.name;
  const how = proof ? `${proof.kind}: ${proof.message}` : 'its first copy may still run there';
  const message = `replaces the copy on ${name}, which is down (${how}); its disk is new`;
  const replaced = { host: name, incarnation: status.incarnation, atMs: ctx.nowMs, ...(proof ? { proof } : {}) };
  return {
    changes: [
      instanceStatusChange(instance, {
        ...placedAnew({ ...status, restartCount: status.restartCount + 1 }, { reason: 'HostReplaced', message }, ctx),
        replaced,
      }),
      eventChange(value, { type: 'Warning', reason: 'HostReplaced', message, host: name }, ctx),
    ],
    conditions: stillDown(host),
  };
}

function fail({ instance, host }: { instance: Entry<Instance>; host: Entry<Host> }, ctx: Context): Plan {
  const { value } = instance;
  const name = host.value.metadata.name;
  const why = { reason: hostDown, message: `host ${name} is down, and the instance is to fail then` };
  return {
    changes: [
      instanceStatusChange(instance, {
        ...value.status,
        conditions: withConditions(
          value.status.conditions,
          [
            { type: 'Running', status: 'Unknown', ...why },
            { type: 'Ready', status: 'Unknown', ...why },
          ],
          ctx.nowMs,
        ),
      }),
      eventChange(value, { type: 'Warning', ...why, host: name }, ctx),
    ],
    conditions: stillDown(host),
  };
}

/** The host must still be down when this is written, and no control plane may have read a heartbeat. */
function stillDown(host: Entry<Host>): NonNullable<Plan['conditions']> {
  return [
    { key: host.key, ifRevision: host.revision },
    { key: keys.lease(host.value.metadata.name), ifRevision: 0 },
  ];
}
