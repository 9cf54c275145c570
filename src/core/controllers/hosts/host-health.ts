// host-health: a host whose agent is silent for too long is not ready; one whose agent sends heartbeats is. Silence
// counts from when this process could first have read a heartbeat, so that an outage of the control plane fails no
// host. Marking a host as lost deletes its lease, so that only a new heartbeat makes it ready, whatever another control
// plane has read.

import type { Host, HostStatus } from '../../../api/resources/host.ts';
import { agentSilent, type HostDown, hostStateName } from '../../../api/resources/host-state.ts';
import { conditionOf, isReady, withConditions } from '../../state/conditions.ts';
import type { Context } from '../../state/context.ts';
import { eventChange } from '../../state/events.ts';
import { withState } from '../../state/host-state-change.ts';
import { keys } from '../../state/keys.ts';
import { isMass, type MassLoss, massLossAt } from '../../state/mass-loss.ts';
import { emptyPlan, type Plan } from '../../state/plan.ts';
import type { Entry, Snapshot } from '../../state/snapshot.ts';
import { type Controller, keysOfKind } from '../controller.ts';

export const hostHealth: Controller = {
  name: 'host-health',
  watches: ['host', 'lease'],
  wakes(change, snapshot) {
    if (change.kind === 'host') return [change.key];
    if (change.after?.kind !== 'lease') return [];
    const key = keys.host(change.after.host);
    const host = snapshot.get('host', key);
    // A host that is heard is checked when its lease may have expired.
    return host && isReady(host.value.status) ? [] : [key];
  },
  keys: (snapshot) => keysOfKind(snapshot, 'host'),
  reconcile(snapshot, key, ctx) {
    const host = snapshot.get('host', key);
    if (!host || host.value.status.session === undefined) return emptyPlan;
    const { metadata } = host.value;
    const seenAtMs = snapshot.leaseSeenAtMs(metadata.name) ?? Number.NEGATIVE_INFINITY;
    const silentMs = ctx.monotonicMs - seenAtMs;
    const heard = silentMs < ctx.policy.offlineAfterMs;
    const name = hostStateName(host.value);
    const told = name === 'Unknown' || name === 'Down' ? 'silent' : 'heard';
    if (heard)
      return {
        ...(told === 'heard' ? stated(host, ctx) : turn(snapshot, host, heardAgain(host, ctx), ctx)),
        requeueAfterMs: ctx.policy.offlineAfterMs - silentMs + 1,
      };
    if (told === 'heard') return turn(snapshot, host, fallenSilent(snapshot, host, ctx), ctx);
    return host.value.status.down ? untilStopped(snapshot, host, ctx) : untilDown(snapshot, host, ctx);
  },
};

/** What derives from other fields, where no operation has written it. A record of an earlier version is left as it is. */
function stated(host: Entry<Host>, ctx: Context): Plan {
  if (host.value.status.state === undefined) return emptyPlan;
  const value = withState(host.value, ctx.nowMs);
  return value === host.value ? emptyPlan : { changes: [{ key: host.key, ifRevision: host.revision, value }] };
}

interface Turn {
  readonly status: HostStatus;
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
  /** Of the lease: it must still be there, or is to go, or must be absent. */
  readonly lease: 'held' | 'ended' | 'absent';
  /** An event of its own: a mass loss begins. */
  readonly alarm?: string;
}

function heardAgain({ value: { status } }: Entry<Host>, ctx: Context): Turn {
  const news = { reason: 'AgentHeard', message: 'its agent is connected again' };
  const { down: _, ...up } = status;
  return {
    status: { ...up, conditions: readiness(status, 'True', news, ctx) },
    type: 'Normal',
    ...news,
    lease: 'held',
  };
}

function fallenSilent(snapshot: Snapshot, { value: { metadata, status } }: Entry<Host>, ctx: Context): Turn {
  const seconds = Math.round(ctx.policy.offlineAfterMs / 1000);
  const news = { reason: agentSilent, message: `its agent has not been heard for ${seconds} s` };
  const conditions = readiness(status, 'False', news, ctx);
  const loss = massLossAt(snapshot, { host: metadata.name, sinceMs: ctx.nowMs }, ctx.policy);
  return {
    status: { ...status, conditions: loss ? alarmed(conditions, loss, ctx) : conditions },
    type: 'Warning',
    ...news,
    lease: 'ended',
    // Once, by the host that makes it a mass loss.
    ...(loss && !isMass(loss.silent - 1, loss.of) ? { alarm: lossWords(loss) } : {}),
  };
}

function lossWords({ silent, of }: MassLoss): string {
  return `${silent} of ${of} hosts fell silent together; replacements are held, because a shared cause is likely`;
}

function alarmed(conditions: HostStatus['conditions'], loss: MassLoss, ctx: Context): HostStatus['conditions'] {
  const alarm = { type: 'MassLoss', status: 'True', reason: 'MassLoss', message: lossWords(loss) } as const;
  return withConditions(conditions, [alarm], ctx.nowMs);
}

/** The silence before the host lost its lease counts as well. */
function untilDown(snapshot: Snapshot, host: Entry<Host>, ctx: Context): Plan {
  const { metadata, status } = host.value;
  const { hostDownAfterMs, offlineAfterMs } = ctx.policy;
  const lostMs = ctx.monotonicMs - snapshot.leaseLostAtMs(metadata.name);
  const waitMs = Math.max(0, hostDownAfterMs - offlineAfterMs) - lostMs;
  if (waitMs > 0) return { ...stated(host, ctx), requeueAfterMs: waitMs + 1 };
  const sinceMs = conditionOf(status.conditions, 'Ready')?.sinceMs ?? ctx.nowMs;
  const loss = massLossAt(snapshot, { host: metadata.name, sinceMs }, ctx.policy);
  const { massLossHoldMs, massLossIntervalMs } = ctx.policy;
  const message = `its agent has not been heard for ${Math.round(hostDownAfterMs / 1000)} s, so it is taken to be down${loss ? `; ${lossWords(loss)}` : ''}`;
  const down: HostDown = {
    ...{ atMs: ctx.nowMs, reason: 'Silent', message },
    ...(loss ? { heldUntilMs: ctx.nowMs + massLossHoldMs + loss.held * massLossIntervalMs } : {}),
  };
  const conditions = loss ? alarmed(status.conditions, loss, ctx) : status.conditions;
  const news = { type: 'Warning', reason: 'HostDown', message } as const;
  return turn(snapshot, host, { status: { ...status, conditions, down }, ...news, lease: 'absent' }, ctx);
}

/**
 * Guests that asked for self-stop have ended: their host had no answer for its lease, and its watchdog device has reset
 * it if they outlived that. The lease counts from before a heartbeat was sent, so from before it was read here.
 */
function untilStopped(snapshot: Snapshot, host: Entry<Host>, ctx: Context): Plan {
  const { metadata, status } = host.value;
  const { down, leaseMs, watchdogMs } = status;
  if (!down || down.proof || leaseMs === undefined || watchdogMs === undefined) return stated(host, ctx);
  const lostMs = ctx.monotonicMs - snapshot.leaseLostAtMs(metadata.name);
  const waitMs = (leaseMs + watchdogLateMs + watchdogMs) * clockDrift + marginMs - lostMs;
  if (waitMs > 0) return { ...stated(host, ctx), requeueAfterMs: waitMs + 1 };
  const message = `its lease ended, and its watchdog device would have reset it ${Math.round(watchdogMs / 1000)} s later`;
  const proof = { kind: 'self-stop', atMs: ctx.nowMs, message } as const;
  const news = { type: 'Normal', reason: 'SelfStopped', message } as const;
  return turn(snapshot, host, { status: { ...status, down: { ...down, proof } }, ...news, lease: 'absent' }, ctx);
}

/** Far more than clocks of machines differ by. */
const clockDrift = 1.25;
/** The watchdog process stops to feed the device this long after the lease. */
const watchdogLateMs = 2_000;
const marginMs = 10_000;

function readiness(
  { conditions }: HostStatus,
  status: 'True' | 'False',
  news: { readonly reason: string; readonly message: string },
  ctx: Context,
): HostStatus['conditions'] {
  return withConditions(conditions, [{ type: 'Ready', status, ...news }], ctx.nowMs);
}

function turn(
  snapshot: Snapshot,
  host: Entry<Host>,
  { status, type, reason, message, lease: wanted, alarm }: Turn,
  ctx: Context,
): Plan {
  const { name } = host.value.metadata;
  const lease = snapshot.get('lease', keys.lease(name));
  const value = withState({ ...host.value, status }, ctx.nowMs);
  return {
    changes: [
      { key: host.key, ifRevision: host.revision, value },
      ...(lease && wanted === 'ended' ? [{ key: lease.key, ifRevision: lease.revision, value: null }] : []),
      eventChange(host.value, { type, reason, message, host: name }, ctx),
      ...(alarm === undefined
        ? []
        : [eventChange(host.value, { type: 'Warning', reason: 'MassLoss', message: alarm, host: name }, ctx)]),
    ],
    ...(lease && wanted === 'held' ? { conditions: [{ key: lease.key, ifRevision: lease.revision }] } : {}),
    ...(wanted === 'absent' ? { conditions: [{ key: keys.lease(name), ifRevision: 0 }] } : {}),
  };
}
