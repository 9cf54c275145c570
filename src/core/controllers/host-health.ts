// host-health: a host whose agent is silent for too long is not ready; one whose agent sends heartbeats is. Silence
// counts from when this process could first have read a heartbeat, so that an outage of the control plane fails no
// host. Marking a host as lost deletes its lease, so that only a new heartbeat makes it ready, whatever another control
// plane has read.

import type { Host } from '../../api/resources/host.ts';
import { isReady, withConditions } from '../state/conditions.ts';
import type { Context } from '../state/context.ts';
import { eventChange } from '../state/events.ts';
import { keys } from '../state/keys.ts';
import { emptyPlan, type Plan } from '../state/plan.ts';
import type { HostLease } from '../state/records.ts';
import type { Entry } from '../state/snapshot.ts';
import { type Controller, keysOfKind } from './controller.ts';

export const hostHealth: Controller = {
  name: 'host-health',
  watches: ['host', 'lease'],
  wakes(change, snapshot) {
    if (change.kind === 'host') return [change.key];
    if (change.after?.kind !== 'lease') return [];
    const key = keys.host(change.after.host);
    const host = snapshot.get('host', key);
    return host && isReady(host.value.status) ? [] : [key]; // a ready host is checked when its lease may have expired
  },
  keys: (snapshot) => keysOfKind(snapshot, 'host'),
  reconcile(snapshot, key, ctx) {
    const host = snapshot.get('host', key);
    if (!host || host.value.status.session === undefined) return emptyPlan;
    const seenAtMs = snapshot.leaseSeenAtMs(host.value.metadata.name) ?? Number.NEGATIVE_INFINITY;
    const silentMs = ctx.monotonicMs - seenAtMs;
    const alive = silentMs < ctx.policy.offlineAfterMs;
    const recheck = alive ? { requeueAfterMs: ctx.policy.offlineAfterMs - silentMs + 1 } : {};
    if (alive === isReady(host.value.status)) return { ...emptyPlan, ...recheck };
    const lease = snapshot.get('lease', keys.lease(host.value.metadata.name));
    return { ...turn(host, lease, alive, ctx), ...recheck };
  },
};

function turn(host: Entry<Host>, lease: Entry<HostLease> | undefined, alive: boolean, ctx: Context): Plan {
  const name = host.value.metadata.name;
  const reason = alive ? 'AgentHeard' : 'AgentSilent';
  const message = alive
    ? 'its agent is connected again'
    : `its agent has not been heard for ${Math.round(ctx.policy.offlineAfterMs / 1000)} s`;
  const { status } = host.value;
  const conditions = withConditions(
    status.conditions,
    [{ type: 'Ready', status: alive ? 'True' : 'False', reason, message }],
    ctx.nowMs,
  );
  return {
    changes: [
      { key: host.key, ifRevision: host.revision, value: { ...host.value, status: { ...status, conditions } } },
      ...(lease && !alive ? [{ key: lease.key, ifRevision: lease.revision, value: null }] : []),
      eventChange(host.value, { type: alive ? 'Normal' : 'Warning', reason, message, host: name }, ctx),
    ],
    ...(lease && alive ? { conditions: [{ key: lease.key, ifRevision: lease.revision }] } : {}),
  };
}
