// drain: carries out the plan of a host, a step at a time. Its record says what has begun, so a crash or another leader continues there.
// A step that fails is noted, and the others go on.
//
//   Planned ──applied──▶ Draining ──nothing left to do──▶ Drained, or Incomplete when something still runs
//      └─too old─▶ gone      └──deadline: as the plan says──▶ Incomplete          (every one: ──cancelled──▶ Cancelled)

import { ApiError } from '../../../api/errors.ts';
import type { PlannedGuest } from '../../../api/plans/host-plan.ts';
import type { Host } from '../../../api/resources/host.ts';
import type { Instance } from '../../../api/resources/instance.ts';
import { openMigration } from '../../migrations/migration-state.ts';
import { beginMigration } from '../../operations/instances/migrate.ts';
import { deleteInstance, replaceInstance } from '../../operations/instance.ts';
import { planKeptMs } from '../../plans/drain.ts';
import { hostOpened } from '../../plans/closing.ts';
import { withMark, withoutMarks } from '../../plans/eviction.ts';
import { isAtRest, isLive } from '../../plans/guests-on.ts';
import { workloadOf } from '../../plans/owner.ts';
import { isDraining } from '../../state/conditions.ts';
import type { Context } from '../../state/context.ts';
import { eventChange } from '../../state/events.ts';
import { instanceStatusChange } from '../../state/instance-change.ts';
import { keys } from '../../state/keys.ts';
import { type Change, emptyPlan, type Plan } from '../../state/plan.ts';
import type { HostPlanRecord } from '../../state/records.ts';
import type { Entry, RecordChange, Snapshot } from '../../state/snapshot.ts';
import { type Controller, keysOfKind, sleepMsMax } from '../controller.ts';

export const drain: Controller = {
  name: 'drain',
  watches: ['hostPlan', 'instance', 'allocation', 'host'],
  wakes(change, snapshot) {
    if (change.kind === 'hostPlan')
      return change.after === null ? [] : [change.key, ...siblingsOf(snapshot, change.key)];
    const host = hostOf(change);
    const key = host === undefined ? '' : keys.hostPlan(host);
    const known = host === undefined ? undefined : snapshot.get('hostPlan', key)?.value;
    return known?.phase === 'Draining' || (known && change.kind === 'host' && change.after === null) ? [key] : [];
  },
  keys: (snapshot) => keysOfKind(snapshot, 'hostPlan'),
  reconcile(snapshot, key, ctx) {
    const entry = snapshot.get('hostPlan', key);
    if (!entry) return emptyPlan;
    const { value } = entry;
    const host = snapshot.get('host', keys.host(value.host));
    if (host?.value.metadata.id !== value.hostId) return removed(entry);
    if (value.phase === 'Planned') {
      const leftMs = value.madeAtMs + 2 * planKeptMs - ctx.nowMs;
      return leftMs > 0 ? { changes: [], requeueAfterMs: Math.min(leftMs, sleepMsMax) } : removed(entry);
    }
    if (value.phase === 'Draining') return step(snapshot, entry, ctx);
    return value.options.thenOpen ? opened(snapshot, entry, host, ctx) : emptyPlan;
  },
};

function hostOf({ before, after }: RecordChange): string | undefined {
  const record = before ?? after;
  if (record?.kind === 'instance') return record.status.host;
  if (record?.kind === 'allocation') return record.host;
  return record?.kind === 'host' ? record.metadata.name : undefined;
}

/** Drains of one plan over several hosts. */
function siblingsOf(snapshot: Snapshot, key: string): string[] {
  const plan = snapshot.get('hostPlan', key)?.value;
  if (plan?.options.thenOpen !== true) return [];
  return Array.from(snapshot.list('hostPlan'))
    .filter((other) => other.key !== key && other.value.hash === plan.hash)
    .map((other) => other.key);
}

/** When the last of them has ended: a host that opened before would take what leaves the others. */
function opened(snapshot: Snapshot, { key, value }: Entry<HostPlanRecord>, host: Entry<Host>, ctx: Context): Plan {
  const going = siblingsOf(snapshot, key).some((other) => snapshot.get('hostPlan', other)?.value.phase === 'Draining');
  if (going || value.phase === 'Cancelled' || !isDraining(host.value)) return emptyPlan;
  return { changes: [hostOpened(host, 'its drain has ended', ctx)] };
}

const removed = ({ key, revision }: Entry<HostPlanRecord>): Plan => ({
  changes: [{ key, ifRevision: revision, value: null }],
});

/** Notes what has left, and begins one more while fewer leave than may. */
function step(snapshot: Snapshot, entry: Entry<HostPlanRecord>, ctx: Context): Plan {
  const { value } = entry;
  const guests = value.guests.map((guest) =>
    isGone(snapshot, value.host, guest) ? { ...guest, progress: done } : (stayed(snapshot, guest) ?? guest),
  );
  const leftMs = (value.deadlineAtMs ?? 0) - ctx.nowMs;
  if (leftMs <= 0) return atDeadline(snapshot, entry, guests, ctx);
  const leaving = guests.filter(({ progress }) => progress === 'leaving').length;
  const next = leaving < value.options.movesMax ? guests.findIndex(isNext) : -1;
  const guest = guests[next];
  const begun = guest && begin(snapshot, guest, ctx);
  if (begun) guests[next] = begun.guest;
  const changed = guests.some((each, i) => each !== value.guests[i] && each.progress !== value.guests[i]?.progress);
  if (!guests.some(({ progress }) => progress === 'waiting' || progress === 'leaving'))
    return end(snapshot, entry, { guests, changes: begun?.changes ?? [] }, ctx);
  return {
    changes: [...(changed ? [recordChange(entry, { ...value, guests })] : []), ...(begun?.changes ?? [])],
    requeueAfterMs: Math.min(leftMs, sleepMsMax),
  };
}

const done = 'done' as const;

function isNext({ progress, action }: PlannedGuest): boolean {
  return progress === 'waiting' && (action === 'replace' || action === 'move' || action === 'stop');
}

/** It is not on the host, or it is and nothing of it runs. */
function isGone(snapshot: Snapshot, host: string, { kind, id, incarnation }: PlannedGuest): boolean {
  if (kind !== 'instance') return snapshot.get('allocation', keys.allocation(id, incarnation)) === undefined;
  const instance = snapshot.instanceById(id)?.value;
  if (instance?.status.host !== host) return true;
  const allocation = snapshot.get('allocation', keys.allocation(id, instance.status.incarnation))?.value;
  return allocation === undefined || isAtRest(instance, allocation);
}

interface Begun {
  readonly guest: PlannedGuest;
  readonly changes: readonly Change[];
}

function begin(snapshot: Snapshot, guest: PlannedGuest, ctx: Context): Begun {
  const instance = snapshot.instanceById(guest.id);
  if (!instance) return { guest: { ...guest, progress: done }, changes: [] };
  try {
    const changes =
      guest.action === 'stop'
        ? stopped(snapshot, instance.value, ctx)
        : guest.action === 'move'
          ? moved(snapshot, instance.value, guest, ctx)
          : instance.value.status.warmPool !== undefined
            ? [] // its warm pool replaces what is on a drained host without being asked
            : evicted(instance);
    return { guest: { ...guest, progress: 'leaving' }, changes };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return { guest: { ...guest, progress: 'failed', message: error.message }, changes: [] };
  }
}

/** A copy of a workload that is stopped instead of replaced is replaced as soon as its workload can. */
function stopped(snapshot: Snapshot, instance: Instance, ctx: Context): readonly Change[] {
  const { project, name, labels } = instance.metadata;
  const spec = { ...instance.spec, powerState: 'stopped' as const };
  const { changes } = replaceInstance(snapshot, { project, name, labels, spec }, ctx).plan;
  const marked = workloadOf(snapshot, instance) !== undefined && spec.protected !== true;
  return marked ? changes.map(withMark) : changes;
}

/** To the host of the plan, if it still takes it. */
function moved(
  snapshot: Snapshot,
  { metadata: { project, name }, status }: Instance,
  guest: PlannedGuest,
  ctx: Context,
): readonly Change[] {
  const options = {
    ...(guest.target === undefined ? {} : { to: guest.target }),
    ...(isLive(guest) ? { live: true } : {}),
  };
  const origin = originOf(snapshot, status);
  return beginMigration(snapshot, { project, name, options, ...origin }, ctx).plan.changes;
}

/** Of several drains the first host counts: there its user has put it. */
function originOf(
  snapshot: Snapshot,
  { host = '', drainedFrom }: Instance['status'],
): { readonly drainedFrom?: NonNullable<Instance['status']['drainedFrom']> } {
  const idOf = (name: string): string | undefined => snapshot.get('host', keys.host(name))?.value.metadata.id;
  if (drainedFrom !== undefined && idOf(drainedFrom.host) === drainedFrom.hostId) return { drainedFrom };
  const hostId = idOf(host);
  return hostId === undefined ? {} : { drainedFrom: { host, hostId } };
}

/** Its move has come to nothing, or a claim has made an instance of it that no warm pool replaces. */
function stayed(snapshot: Snapshot, guest: PlannedGuest): PlannedGuest | undefined {
  if (guest.progress === 'leaving' && guest.reasons.some(({ code }) => code === 'WarmPool')) {
    if (snapshot.instanceById(guest.id)?.value.status.warmPool !== undefined) return undefined;
    return { ...guest, progress: 'failed', message: 'it was claimed from its warm pool: plan the drain again' };
  }
  if (guest.action !== 'move' || guest.progress !== 'leaving') return undefined;
  const migration = snapshot.instanceById(guest.id)?.value.status.migration;
  if (migration?.step !== 'Failed' && migration?.step !== 'Cancelled') return undefined;
  return { ...guest, progress: 'failed', message: migration.message ?? 'its move was cancelled' };
}

/** Its workload replaces it, within what may be missing. */
function evicted(instance: Entry<Instance>): readonly Change[] {
  const { spec, status, metadata } = instance.value;
  if (spec.protected === true)
    throw new ApiError('Conflict', `it is protected from deletion since: "berth unprotect ${metadata.name}"`);
  return status.evicted ? [] : [instanceStatusChange(instance, { ...status, evicted: true })];
}

function end(
  snapshot: Snapshot,
  entry: Entry<HostPlanRecord>,
  { guests, changes }: { readonly guests: readonly PlannedGuest[]; readonly changes: readonly Change[] },
  ctx: Context,
): Plan {
  const { value } = entry;
  const left = guests.filter(({ progress }) => progress !== done).length;
  const phase = left === 0 ? ('Drained' as const) : ('Incomplete' as const);
  const host = snapshot.get('host', keys.host(value.host))?.value;
  const message =
    left === 0 ? 'nothing runs here any more' : `${left} still here: "berth host drain ${value.host} --status"`;
  const news = {
    type: left === 0 ? ('Normal' as const) : ('Warning' as const),
    reason: phase,
    message,
    host: value.host,
  };
  return {
    changes: [
      recordChange(entry, { ...value, guests: [...guests], phase, endedAtMs: ctx.nowMs }),
      ...changes,
      ...(host ? [eventChange(host, news, ctx)] : []),
    ],
  };
}

/** What the plan says: they stay, or they are stopped. */
function atDeadline(
  snapshot: Snapshot,
  entry: Entry<HostPlanRecord>,
  guests: readonly PlannedGuest[],
  ctx: Context,
): Plan {
  const remaining = guests.filter(({ progress }) => progress === 'waiting' || progress === 'leaving');
  const over = guests.map(
    (guest): PlannedGuest =>
      remaining.includes(guest) ? { ...guest, progress: 'left', message: overdueMessage(snapshot, guest) } : guest,
  );
  const changes =
    entry.value.options.atDeadline === 'stop'
      ? remaining.flatMap((guest) => ended(snapshot, guest, ctx))
      : withoutMarks(snapshot, remaining);
  return end(snapshot, entry, { guests: over, changes }, ctx);
}

function overdueMessage(snapshot: Snapshot, { id }: PlannedGuest): string {
  const instance = snapshot.instanceById(id)?.value;
  const migration = instance && openMigration(instance);
  return migration ? `the deadline was over; its move to ${migration.to} goes on` : 'the deadline was over';
}

/** What its workload replaces is deleted, anything else is stopped. */
function ended(snapshot: Snapshot, guest: PlannedGuest, ctx: Context): readonly Change[] {
  const instance = snapshot.instanceById(guest.id)?.value;
  if (!instance) return [];
  try {
    return guest.action === 'replace'
      ? deleteInstance(snapshot, instance.metadata, ctx).plan.changes
      : stopped(snapshot, instance, ctx);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return []; // it cannot be stopped: it is listed as left
  }
}

function recordChange({ key, revision }: Entry<HostPlanRecord>, value: HostPlanRecord): Change {
  return { key, ifRevision: revision, value };
}
