// An agent's report on one guest. Only a report by the host that the instance is bound to, in its current session,
// about the current incarnation changes anything; every other one is stale and ignored (invariant 7).

import type { GuestStatus, Report } from '../../api/agent-protocol.ts';
import { hasFailedWithHost } from '../../api/instances/restart-rule.ts';
import { acceleratorFallback } from '../../api/resources/guest.ts';
import { type Instance, type InstanceStatus, isToBeOn, isToStartAgain } from '../../api/resources/instance.ts';
import { release, releaseAllButDisk } from '../ledger/ledger.ts';
import { roleIn } from '../migrations/migration-state.ts';
import { withMigration } from '../migrations/migration-steps.ts';
import { type NewCondition, withConditions } from '../state/conditions.ts';
import type { Context } from '../state/context.ts';
import { eventChange, type NewEvent } from '../state/events.ts';
import {
  conditionsAfterHostDown,
  guestConditions,
  isUp,
  mayHaveMoved,
  messageByState,
  notFoundAfterRestore,
  phaseOf,
  putBehind,
  savedMessage,
} from '../state/guest-phase.ts';
import { instanceStatusChange } from '../state/instance-change.ts';
import { keys } from '../state/keys.ts';
import type { Plan } from '../state/plan.ts';
import type { Allocation } from '../state/records.ts';
import type { Entry, Snapshot } from '../state/snapshot.ts';
import { assignmentOf } from './assignment.ts';
import { resizeDone } from './instances/resize.ts';
import { hostInSession } from './host.ts';

export interface ReportDecision {
  readonly plan: Plan;
  readonly result: 'accepted' | 'stale';
}

const stale: ReportDecision = { plan: { changes: [] }, result: 'stale' };

/** Throws `StaleEpoch` when the session has ended. */
export function applyReport(
  snapshot: Snapshot,
  input: { readonly host: string; readonly epoch: number; readonly report: Report },
  ctx: Context,
): ReportDecision {
  const host = hostInSession(snapshot, input.host, input.epoch);
  const { report } = input;
  const allocation = snapshot.get('allocation', keys.allocation(report.instanceId, report.incarnation));
  if (!allocation || allocation.value.host !== input.host || allocation.value.consumer.kind !== undefined) return stale;
  const instance = snapshot.instanceById(report.instanceId);
  const decided =
    report.guest.state === 'absent'
      ? applyAbsence(allocation, instance, ctx)
      : applyGuest(allocation, instance, { ...input, guest: asAsked(instance?.value, report.guest) }, ctx);
  if (decided.plan.changes.length === 0) return decided;
  const conditions = [...(decided.plan.conditions ?? []), { key: host.key, ifRevision: host.revision }];
  return { ...decided, plan: { ...decided.plan, conditions } };
}

/** A guest whose end its owner has acknowledged counts as stopped. */
function asAsked(instance: Instance | undefined, guest: GuestStatus): GuestStatus {
  return isToStartAgain(guest, instance?.status.startAgain) ? putBehind(guest) : guest;
}

/** Nothing is left on the host: its room is released, if the instance was no longer wanted there. */
function applyAbsence(
  allocation: Entry<Allocation>,
  instance: Entry<Instance> | undefined,
  ctx: Context,
): ReportDecision {
  const { want } = assignmentOf(allocation, instance);
  if (want === 'kept' && instance) return { plan: notFound(allocation, instance, ctx), result: 'accepted' };
  if (want !== 'absent') return stale;
  // The instance must still not be wanted there when this is written.
  const conditions = instance ? [{ key: instance.key, ifRevision: instance.revision }] : [];
  return { plan: { changes: release(allocation), conditions }, result: 'accepted' };
}

/** The host does not have the guest that the backup names. */
function notFound(allocation: Entry<Allocation>, instance: Entry<Instance>, ctx: Context): Plan {
  const { host = '', ...kept } = instance.value.status;
  const why = {
    reason: notFoundAfterRestore,
    message: `host ${host} has no guest of it since the store was restored: it was moved or removed after the backup was made`,
  };
  const conditions = withConditions(
    kept.conditions,
    [
      { type: 'Running', status: 'False', ...why },
      { type: 'Ready', status: 'False', ...why },
    ],
    ctx.nowMs,
  );
  return {
    changes: [
      instanceStatusChange(instance, { ...kept, phase: 'Failed', failedAtMs: ctx.nowMs, conditions }),
      ...release(allocation),
      eventChange(instance.value, { type: 'Warning', ...why, host }, ctx),
    ],
  };
}

function applyGuest(
  allocation: Entry<Allocation>,
  instance: Entry<Instance> | undefined,
  input: { readonly host: string; readonly epoch: number; readonly report: Report; readonly guest: GuestStatus },
  ctx: Context,
): ReportDecision {
  const { report, epoch, host, guest } = input;
  if (instance && roleIn(instance.value, allocation.value)?.role === 'incoming') return applyIncoming(instance, input);
  if (!instance || instance.value.status.host !== host || instance.value.status.incarnation !== report.incarnation)
    return stale;
  const { status } = instance.value;
  const last = status.report;
  if (isOvertaken(last, { epoch, sequence: report.sequence })) return stale;

  const next = withDowntime(nextStatus(instance.value, guest, input, ctx), guest);
  const resized = resizeDone(instance.value, allocation, guest);
  const released = restsNow(instance.value, guest, report) ? releaseAllButDisk(allocation) : (resized?.released ?? []);
  // An unchanged report is written as well: an earlier report may still arrive, and must be recognised as older; and
  // controllers/hosts/lost-host.ts needs the session of the last report.
  return {
    plan: {
      changes: [
        instanceStatusChange(instance, resized ? { ...next, resize: resized.resize } : next),
        ...released,
        ...[fallbackOf(status, guest), newsOf(status, next, guest)].flatMap((news) =>
          news === undefined ? [] : [eventChange(instance.value, { ...news, host }, ctx)],
        ),
      ],
    },
    result: 'accepted',
  };
}

/** How long a guest stood still that arrived live: its agent says so until it restarts. */
function withDowntime(status: InstanceStatus, { movedLive }: GuestStatus): InstanceStatus {
  const { migration } = status;
  if (migration === undefined || movedLive?.id !== migration.id) return status;
  return { ...status, migration: { ...migration, stoodStillMs: movedLive.stoodStillMs } };
}

/** The target of a move tells how far it is; the controller `migration` decides. */
function applyIncoming(
  entry: Entry<Instance>,
  { epoch, report, guest }: { readonly epoch: number; readonly report: Report; readonly guest: GuestStatus },
): ReportDecision {
  const { migration } = entry.value.status;
  if (migration === undefined || guest.incoming?.id !== migration.id) return stale;
  const last = migration.report;
  if (isOvertaken(last, { epoch, sequence: report.sequence })) return stale;
  const next = { ...migration, seen: guest.incoming, report: { epoch, sequence: report.sequence } };
  return { plan: { changes: [withMigration(entry, next)] }, result: 'accepted' };
}

/**
 * Whether the guest does not run and will not without a new order (S4.7): it ended, or it is stopped and its host knows
 * that this is still wanted. A host that has not seen the newest spec may be starting it now.
 */
function restsNow(instance: Instance, guest: GuestStatus, report: Report): boolean {
  const { metadata, spec, status } = instance;
  if (mayHaveMoved(instance, guest)) return true;
  if (guest.state === 'exited' || guest.state === 'failed') return true;
  if (guest.state !== 'stopped') return false;
  return hasFailedWithHost(status) || (!isToBeOn(spec) && report.observedGeneration >= metadata.generation);
}

/** A guest that ended by itself counts as failed where it is to restart. */
function endsNow({ spec, status }: Instance, phase: InstanceStatus['phase']): boolean {
  return phase !== status.phase && (phase === 'Failed' || (phase === 'Exited' && spec.restartPolicy === 'Always'));
}

const overSinceRestore: NewCondition = {
  type: 'Running',
  status: 'False',
  reason: notFoundAfterRestore,
  message:
    'it is over here, and may have been started elsewhere since the backup was made: create it again once it runs nowhere',
};

function nextStatus(
  instance: Instance,
  guest: GuestStatus,
  input: { readonly epoch: number; readonly report: Report },
  ctx: Context,
): InstanceStatus {
  const { status } = instance;
  const moved = mayHaveMoved(instance, guest);
  const phase = moved ? 'Failed' : phaseOf(instance, guest);
  return {
    ...status,
    phase,
    guest,
    report: { epoch: input.epoch, sequence: input.report.sequence },
    observedGeneration: Math.max(
      status.observedGeneration,
      Math.min(input.report.observedGeneration, instance.metadata.generation),
    ),
    conditions: withConditions(
      status.conditions,
      [...guestConditions(guest), ...conditionsAfterHostDown(instance, guest), ...(moved ? [overSinceRestore] : [])],
      ctx.nowMs,
    ),
    ...(isUp(guest) && !(status.guest && isUp(status.guest)) ? { runningAtMs: ctx.nowMs } : {}),
    ...(guest.ready && status.guest?.ready !== true ? { readyAtMs: ctx.nowMs } : {}),
    ...(endsNow(instance, phase) ? { failedAtMs: ctx.nowMs } : {}),
  };
}

/** The guest runs, but without the hardware acceleration or driver intended for it. */
function fallbackOf(before: InstanceStatus, { reason, message }: GuestStatus): NewEvent | undefined {
  if (reason !== acceleratorFallback || before.guest?.reason === reason) return undefined;
  return { type: 'Warning', reason, message: message ?? 'the guest runs under TCG' };
}

/** In this run of the guest. */
function wasReady({ readyAtMs, runningAtMs = 0, guest }: InstanceStatus): boolean {
  return guest !== undefined && isUp(guest) && readyAtMs !== undefined && readyAtMs >= runningAtMs;
}

function readyWords(before: InstanceStatus): string {
  const { migration, guest, incarnation } = before;
  if (migration?.kind === 'live' && migration.incarnation === incarnation && guest === undefined)
    return 'ready, as it arrived';
  return wasReady(before) ? 'ready again' : 'booted';
}

/** An event for each step that users wait for; progress is not a step. */
function newsOf(before: InstanceStatus, after: InstanceStatus, guest: GuestStatus): NewEvent | undefined {
  const address = guest.address === undefined ? '' : ` at ${guest.address}`;
  const stoodStillMs = after.migration?.stoodStillMs;
  if (stoodStillMs !== undefined && before.migration?.stoodStillMs === undefined)
    return { reason: 'MovedLive', message: `it runs here, and stood still for ${stoodStillMs} ms` };
  if (guest.ready && before.guest?.ready !== true)
    return { reason: 'Ready', message: `${readyWords(before)}${address}` };
  if (guest.saved === true && before.guest?.saved !== true && after.phase === 'Suspended')
    return { reason: 'SuspendedToDisk', message: savedMessage };
  if (before.phase === after.phase) {
    if (before.guest?.ready !== true || guest.failing === undefined) return undefined;
    return { type: 'Warning', reason: 'NotReady', message: guest.failing.message };
  }
  switch (after.phase) {
    case 'Running':
      return before.phase === 'Suspended'
        ? { reason: 'Resumed', message: 'the guest resumed' }
        : { reason: 'Started', message: messageByState.running };
    case 'Suspended':
      return { reason: 'Suspended', message: messageByState.suspended };
    case 'Stopped':
      return guest.reason === undefined
        ? { reason: 'Stopped', message: 'stopped on request' }
        : { type: 'Warning', reason: guest.reason, message: guest.message ?? messageByState.stopped };
    case 'Exited':
      return { reason: 'Exited', message: guest.message ?? messageByState.exited };
    case 'Failed':
      return { type: 'Warning', reason: guest.reason ?? 'Failed', message: guest.message ?? messageByState.failed };
    default:
      return undefined;
  }
}

interface Sequenced {
  readonly epoch: number;
  readonly sequence: number;
}

/** Whether a report is no newer than the `last` that was taken. */
function isOvertaken(last: Sequenced | undefined, { epoch, sequence }: Sequenced): boolean {
  return last !== undefined && (epoch < last.epoch || (epoch === last.epoch && sequence <= last.sequence));
}
