// lost-host: instances of a host that is lost or removed fail with that reason (S4.7). They keep their room on a lost host:
// their guests may still run there.

import type { Instance } from '../../api/resources/instance.ts';
import { conditionOf, withConditions } from '../state/conditions.ts';
import { eventChange } from '../state/events.ts';
import { instanceStatusChange } from '../state/instance-change.ts';
import { keys } from '../state/keys.ts';
import { emptyPlan } from '../state/plan.ts';
import type { Snapshot } from '../state/snapshot.ts';
import { type Controller, keysOfKind } from './controller.ts';

export const hostLost = 'HostLost';

export const lostHost: Controller = {
  name: 'lost-host',
  *wakes(change, snapshot) {
    if (change.kind === 'instance' && change.after) yield change.key;
    if (change.kind !== 'host' || change.before?.kind !== 'host') return;
    for (const { value } of snapshot.allocationsOnHost(change.before.metadata.name)) {
      yield keys.instance(value.consumer.project, value.consumer.name);
    }
  },
  keys: (snapshot) => keysOfKind(snapshot, 'instance'),
  reconcile(snapshot, key, ctx) {
    const instance = snapshot.get('instance', key);
    if (!instance || !dependsOnHost(instance.value)) return emptyPlan;
    const { status } = instance.value;
    const loss = lossOf(snapshot, status.host ?? '');
    if (!loss) return emptyPlan;
    return {
      changes: [
        instanceStatusChange(instance, {
          ...status,
          phase: 'Failed',
          failedAtMs: ctx.nowMs,
          conditions: withConditions(
            status.conditions,
            [
              { type: 'Running', status: loss.reason === hostLost ? 'Unknown' : 'False', ...loss },
              { type: 'Ready', status: loss.reason === hostLost ? 'Unknown' : 'False', ...loss },
            ],
            ctx.nowMs,
          ),
        }),
        eventChange(
          instance.value,
          { type: 'Warning', ...loss, ...(status.host === undefined ? {} : { host: status.host }) },
          ctx,
        ),
      ],
    };
  },
};

/** Whether it fails when its host does: bound, not over, not already failed. */
function dependsOnHost({ status, metadata }: Instance): boolean {
  if (status.host === undefined || metadata.deletionRequestedAtMs !== undefined) return false;
  return (
    status.phase === 'Scheduled' ||
    status.phase === 'Starting' ||
    status.phase === 'Running' ||
    status.phase === 'Stopping'
  );
}

function lossOf(snapshot: Snapshot, name: string): { reason: string; message: string } | undefined {
  const host = snapshot.get('host', keys.host(name));
  if (!host) return { reason: 'HostRemoved', message: `host ${name} has been removed` };
  const ready = conditionOf(host.value.status.conditions, 'Ready');
  return ready?.status === 'False' ? { reason: hostLost, message: `host ${name}: ${ready.message}` } : undefined;
}
