// spare: leads a spare from room on a host to its release. It decides the steps; server/spares/ carries out those that need a provisioner
// or a question to the machine, and reports what came of them. The begin of a step is written before it begins.
//
//   Pending ─room─▶ Provisioning ─made─▶ Checking ─answers─▶ Ready ─time is over─▶ Releasing ─undone─▶ Released ─ later ─▶ gone
//      └─no room─▶ Failed ◀──────────────── undone ◀── Releasing ◀── failed ──┘ (from every step)
//                                  Unknown: the result of a step cannot be found out; a person looks and releases it

import type { Instance } from '../../../api/resources/instance.ts';
import { isEnded, type Spare, waitMsDefault } from '../../../api/resources/spare.ts';
import { deleteInstance } from '../../operations/instance.ts';
import {
  begun,
  ended,
  provisioned,
  releasing,
  spareChange,
  taskNameOf,
  taskOf,
} from '../../operations/spares/spare-change.ts';
import { failedAttempt } from '../../operations/spares/report-spare.ts';
import { conditionOf } from '../../state/conditions.ts';
import type { Context } from '../../state/context.ts';
import { keys } from '../../state/keys.ts';
import { type Change, emptyPlan, type Plan } from '../../state/plan.ts';
import type { Entry, Snapshot } from '../../state/snapshot.ts';
import { sparesOf } from '../../state/views/spares.ts';
import { type Controller, keysOfKind, sleepMsMax } from '../controller.ts';

export const spare: Controller = {
  name: 'spare',
  watches: ['spare', 'task', 'instance'],
  wakes({ key, kind, before, after }, snapshot) {
    if (kind === 'spare') return after === null ? [] : [key];
    const held = after ?? before;
    const id = held?.kind === 'task' || held?.kind === 'instance' ? held.metadata.id : '';
    const owner = sparesOf(snapshot).heldBy(id);
    return owner === undefined ? [] : [owner];
  },
  keys: (snapshot) => keysOfKind(snapshot, 'spare'),
  reconcile(snapshot, key, ctx) {
    const entry = snapshot.get('spare', key);
    if (!entry) return emptyPlan;
    const { status } = entry.value;
    if (isEnded(status.phase)) return afterwards(entry, ctx);
    if (status.phase === 'Unknown') return emptyPlan;
    return status.instance === undefined ? ofTask(snapshot, entry, ctx) : ofInstance(snapshot, entry, ctx);
  },
};

function afterwards({ key, revision, value }: Entry<Spare>, ctx: Context): Plan {
  const leftMs = (value.status.endedAtMs ?? 0) + ctx.policy.tasksKeptMs - ctx.nowMs;
  return leftMs > 0 ? again(leftMs) : { changes: [{ key, ifRevision: revision, value: null }] };
}

/** One that a provisioner of the configuration makes, on room that a task holds. */
function ofTask(snapshot: Snapshot, entry: Entry<Spare>, ctx: Context): Plan {
  const { status, metadata } = entry.value;
  const task = taskOf(snapshot, entry.value);
  const conditions = [{ key: keys.task(metadata.project, taskNameOf(metadata.id)), ifRevision: task?.revision ?? 0 }];
  if (status.phase === 'Releasing') return { ...nextAttempt(entry, ctx), conditions };
  if (task?.value.status.phase === 'Placed')
    return {
      ...(status.phase === 'Pending' ? begin(entry, task.value.status.host, ctx) : step(entry, ctx)),
      conditions,
    };
  const why = task ? conditionOf(task.value.status.conditions, 'Scheduled')?.message : 'its task was deleted';
  if (task?.value.status.phase === 'Pending') return { ...waiting(snapshot, entry, why ?? '', ctx), conditions };
  const failure = { reason: 'RoomLost', message: `its room is gone: ${why}`, isWarning: true };
  if (status.phase !== 'Pending') return { changes: releasing(entry, failure, ctx), conditions };
  return { changes: noRoom(snapshot, entry, why ?? '', ctx), conditions };
}

/** Nothing was made yet. */
function noRoom(snapshot: Snapshot, entry: Entry<Spare>, why: string, ctx: Context): readonly Change[] {
  const failure = `No available nodes: ${why}`;
  if (entry.value.status.instance !== undefined)
    return releasing(entry, { reason: 'NoRoom', message: failure, isWarning: true }, ctx);
  const failed = { ...entry.value, status: { ...entry.value.status, failure } };
  return ended(snapshot, { ...entry, value: failed }, ctx);
}

/** For room, when it may. */
function waiting(snapshot: Snapshot, entry: Entry<Spare>, why: string, ctx: Context): Plan {
  const { metadata, spec } = entry.value;
  const leftMs = metadata.createdAtMs + (spec.waitMs ?? waitMsDefault) - ctx.nowMs;
  return leftMs > 0 ? again(leftMs) : { changes: noRoom(snapshot, entry, why, ctx) };
}

/** One that is an instance of ours. */
function ofInstance(snapshot: Snapshot, entry: Entry<Spare>, ctx: Context): Plan {
  const { status, metadata } = entry.value;
  const key = keys.instance(metadata.project, metadata.name);
  const found = snapshot.get('instance', key);
  const instance = found?.value.metadata.id === status.instance ? found : undefined;
  const conditions = [{ key, ifRevision: found?.revision ?? 0 }];
  if (!instance) {
    const lost = status.phase !== 'Releasing' && status.failure === undefined;
    const gone = lost ? { ...entry.value, status: { ...status, failure: 'its instance was deleted' } } : entry.value;
    return { changes: ended(snapshot, { ...entry, value: gone }, ctx), conditions };
  }
  if (status.phase === 'Releasing') return remove(snapshot, instance, ctx);
  const failure = whyLost(instance.value);
  if (failure !== undefined)
    return {
      changes: releasing(entry, { reason: 'InstanceLost', message: failure, isWarning: true }, ctx),
      conditions,
    };
  const { host, guest, phase } = instance.value.status;
  if (status.phase === 'Pending' && host === undefined)
    return { ...withoutRoom(snapshot, entry, instance.value, ctx), conditions };
  if (status.phase === 'Pending') return { ...begin(entry, host, ctx), conditions };
  if (status.phase === 'Provisioning' && phase === 'Running' && guest?.ready) {
    const { address } = guest;
    return {
      changes: provisioned(entry, { name: metadata.name, ...(address === undefined ? {} : { address }) }, ctx),
      conditions,
    };
  }
  return { ...step(entry, ctx), conditions };
}

function withoutRoom(snapshot: Snapshot, entry: Entry<Spare>, { status }: Instance, ctx: Context): Plan {
  const { reason, message = '' } = conditionOf(status.conditions, 'Scheduled') ?? {};
  const isFull = reason === 'Unschedulable' || reason === 'CapacityMap' || reason === 'ConcurrencyLimit';
  if (isFull && entry.value.spec.whenFull !== 'wait') return { changes: noRoom(snapshot, entry, message, ctx) };
  return waiting(snapshot, entry, message, ctx);
}

function whyLost({ metadata, status }: Instance): string | undefined {
  if (metadata.deletionRequestedAtMs !== undefined) return 'its instance is being deleted';
  if (status.phase !== 'Failed' && status.phase !== 'Exited' && status.phase !== 'Stopped') return undefined;
  const why = conditionOf(status.conditions, 'Running')?.message ?? status.guest?.message;
  return `its instance is ${status.phase}${why ? `: ${why}` : ''}`;
}

function remove(snapshot: Snapshot, { value: { metadata } }: Entry<Instance>, ctx: Context): Plan {
  if (metadata.deletionRequestedAtMs !== undefined) return emptyPlan;
  return deleteInstance(snapshot, { project: metadata.project, name: metadata.name }, ctx).plan;
}

function begin(entry: Entry<Spare>, host: string | undefined, ctx: Context): Plan {
  const { status, spec } = entry.value;
  const placed = { ...status, phase: 'Provisioning' as const, ...(host === undefined ? {} : { host }) };
  const news = { reason: 'Provisioning', message: `it is made on ${host} by ${spec.provisioner}` };
  return { changes: spareChange(entry, begun(placed, ctx), news, ctx) };
}

/** What time alone decides. */
function step(entry: Entry<Spare>, ctx: Context): Plan {
  const { spec, status } = entry.value;
  const { attemptAtMs = ctx.nowMs, heldUntilMs = ctx.nowMs } = status;
  const release = (reason: string, message: string, isWarning: boolean): Plan => ({
    changes: releasing(entry, { reason, message, isWarning }, ctx),
  });
  switch (status.phase) {
    case 'Provisioning': {
      if (status.nextAttemptAtMs !== undefined) return nextAttempt(entry, ctx);
      const leftMs = attemptAtMs + spec.provisionMs - ctx.nowMs;
      if (leftMs > 0) return again(leftMs);
      return release('ProvisionFailed', `it was not made within ${spec.provisionMs / 1_000} s`, true);
    }
    case 'Checking': {
      const { timeoutMs = 0 } = spec.ready ?? {};
      const leftMs = attemptAtMs + timeoutMs - ctx.nowMs;
      if (leftMs > 0) return again(leftMs);
      const last = conditionOf(status.conditions, 'Ready')?.message ?? '';
      return release('NotReady', `it was not ready within ${timeoutMs / 1_000} s: ${last}`, true);
    }
    case 'Ready': {
      const leftMs = heldUntilMs - ctx.nowMs;
      return leftMs > 0 ? again(leftMs) : release('Expired', 'the time that it is held for is over', false);
    }
    default:
      return emptyPlan;
  }
}

/** Of making or releasing it: begins when its time has come, or when none has begun. */
function nextAttempt(entry: Entry<Spare>, ctx: Context): Plan {
  const { status } = entry.value;
  const { attemptAtMs, nextAttemptAtMs } = status;
  if (nextAttemptAtMs === undefined && attemptAtMs !== undefined) return overdueRelease(entry, attemptAtMs, ctx);
  const leftMs = (nextAttemptAtMs ?? 0) - ctx.nowMs;
  if (leftMs > 0) return again(leftMs);
  const next = begun(status, ctx);
  const news = { reason: status.phase, message: `attempt ${next.attempt}`, isProgress: true };
  return { changes: spareChange(entry, next, news, ctx) };
}

/** A release may be repeated, so that one that takes too long is tried again. */
function overdueRelease(entry: Entry<Spare>, attemptAtMs: number, ctx: Context): Plan {
  const { provisionMs } = entry.value.spec;
  const leftMs = attemptAtMs + provisionMs - ctx.nowMs;
  if (leftMs > 0) return again(leftMs);
  return { changes: failedAttempt(entry, { why: `it was not released within ${provisionMs / 1_000} s` }, ctx) };
}

function again(afterMs: number): Plan {
  return { changes: [], requeueAfterMs: Math.min(afterMs, sleepMsMax) };
}
