// lost-host: instances of a lost or removed host fail with that reason (S4.7). They keep their room on a lost host,
// because their guests may still run there. When the host reconnects, the last report about each applies again.

import { hostStateName } from '../../../api/resources/host-state.ts';
import type { Instance } from '../../../api/resources/instance.ts';
import { conditionOf, withConditions } from '../../state/conditions.ts';
import type { Context } from '../../state/context.ts';
import { eventChange } from '../../state/events.ts';
import { guestConditions, hostLost, phaseOf, restored } from '../../state/guest-phase.ts';
import { onHostLossOf } from '../../state/host-loss.ts';
import { instanceStatusChange } from '../../state/instance-change.ts';
import { keys } from '../../state/keys.ts';
import { emptyPlan, type Plan } from '../../state/plan.ts';
import type { Entry, Snapshot } from '../../state/snapshot.ts';
import { type Controller, keysOfKind } from '../controller.ts';

export const lostHost: Controller = {
  name: 'lost-host',
  watches: ['instance', 'host'],
  wakes({ key, before, after }, snapshot) {
    if (after?.kind === 'instance' && concerns(snapshot, after)) return [key];
    return before?.kind === 'host' ? instancesOn(snapshot, before.metadata.name) : [];
  },
  keys: (snapshot) => keysOfKind(snapshot, 'instance'),
  reconcile(snapshot, key, ctx) {
    const instance = snapshot.get('instance', key);
    if (!instance) return emptyPlan;
    const loss = lossOf(snapshot, instance.value.status.host ?? '');
    if (loss)
      return dependsOnHost(instance.value, loss)
        ? fail(snapshot, instance, withOutlook(snapshot, instance.value, loss, ctx), ctx)
        : emptyPlan;
    return isOutOfSight(instance.value) ? takeUpAgain(snapshot, instance, ctx) : emptyPlan;
  },
};

/** The keys of instances with a claim on the host. */
export function* instancesOn(snapshot: Snapshot, host: string): Iterable<string> {
  for (const { value } of snapshot.allocationsOnHost(host)) {
    if (value.consumer.kind === undefined) yield keys.instance(value.consumer.project, value.consumer.name);
  }
}

function concerns(snapshot: Snapshot, instance: Instance): boolean {
  const { host } = instance.status;
  return host !== undefined && (isOutOfSight(instance) || lossOf(snapshot, host) !== undefined);
}

function fail(snapshot: Snapshot, instance: Entry<Instance>, loss: Loss, ctx: Context): Plan {
  const { status } = instance.value;
  const hostKey = keys.host(status.host ?? '');
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
    // The host must still be lost when this is written: another control plane may have read a heartbeat.
    conditions: [{ key: hostKey, ifRevision: snapshot.get('host', hostKey)?.revision ?? 0 }],
  };
}

/**
 * An agent reports only changes within its session, so its last report before the silence is still valid. In a new
 * session it reports everything again, and the controller waits for that.
 */
function takeUpAgain(snapshot: Snapshot, instance: Entry<Instance>, ctx: Context): Plan {
  const { status } = instance.value;
  const host = snapshot.get('host', keys.host(status.host ?? ''));
  if (!host || !status.guest || status.report?.epoch !== host.value.status.epoch) return emptyPlan;
  return {
    changes: [
      instanceStatusChange(instance, {
        ...status,
        phase: phaseOf(instance.value, status.guest),
        conditions: withConditions(status.conditions, guestConditions(status.guest), ctx.nowMs),
      }),
      eventChange(
        instance.value,
        {
          reason: 'HostBack',
          message: `host ${status.host} is connected again; the guest is unchanged`,
          host: status.host ?? '',
        },
        ctx,
      ),
    ],
    // The session must be the same when this is written.
    conditions: [{ key: host.key, ifRevision: host.revision }],
  };
}

function isOutOfSight({ status, metadata }: Instance): boolean {
  return (
    status.phase === 'Failed' &&
    metadata.deletionRequestedAtMs === undefined &&
    conditionOf(status.conditions, 'Running')?.reason === hostLost
  );
}

/**
 * Whether the instance fails with its host: it is bound, and neither ended nor failed. On a removed host even the disks
 * are gone.
 */
function dependsOnHost({ status, metadata }: Instance, loss: Loss): boolean {
  // Whether the guest exists is still unknown after a restore: a host that goes and returns must not clear that.
  if (loss.reason === hostLost && conditionOf(status.conditions, 'Running')?.reason === restored) return false;
  if (status.host === undefined || metadata.deletionRequestedAtMs !== undefined) return false;
  switch (status.phase) {
    case 'Scheduled':
    case 'Starting':
    case 'Running':
    case 'Suspended':
    case 'Stopping':
      return true;
    case 'Stopped':
      return loss.reason !== hostLost;
    default:
      return false;
  }
}

/** What comes next, by the rule of the instance, and when. */
function withOutlook(snapshot: Snapshot, instance: Instance, loss: Loss, { nowMs, policy }: Context): Loss {
  const rule = loss.reason === hostLost ? onHostLossOf(snapshot, instance) : undefined;
  if (rule === undefined) return loss;
  const leftMs = Math.max(0, policy.hostDownAfterMs - policy.offlineAfterMs);
  const deadline = `once its host is down, not before ${new Date(nowMs + leftMs).toISOString()}`;
  const proof = instance.spec.exclusive ? ', with a proof that the first copy has ended' : '';
  const next = { replace: `replaced ${deadline}${proof}`, wait: 'it waits for its host', fail: `it fails ${deadline}` };
  return { ...loss, message: `${loss.message}; ${next[rule]}` };
}

interface Loss {
  readonly reason: string;
  readonly message: string;
}

function lossOf(snapshot: Snapshot, name: string): Loss | undefined {
  const host = snapshot.get('host', keys.host(name));
  if (!host) return { reason: 'HostRemoved', message: `host ${name} has been removed` };
  const ready = conditionOf(host.value.status.conditions, 'Ready');
  // What an agent says of itself is no loss: its guests run on.
  return ready?.status === 'False' && hostStateName(host.value) !== 'NotReady'
    ? { reason: hostLost, message: `host ${name}: ${ready.message}` }
    : undefined;
}
