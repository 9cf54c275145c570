// restore: carries out the restore of a host, a step at a time. Its record says what has begun, so a crash or another leader continues there.
// A move that fails is noted, and the others go on.
//
//   Restoring ──nothing left to do──▶ Restored, or Incomplete when some are not back ──a week──▶ gone
//       └──cancelled, or the host is drained──▶ Cancelled

import { ApiError } from '../../../api/errors.ts';
import type { PlannedGuest } from '../../../api/plans/host-plan.ts';
import { openMigration } from '../../migrations/migration-state.ts';
import { beginMigration } from '../../operations/instances/migrate.ts';
import { cancelledRestore } from '../../operations/plans/host-restore.ts';
import { isLive } from '../../plans/guests-on.ts';
import { isDraining } from '../../state/conditions.ts';
import type { Context } from '../../state/context.ts';
import { eventChange } from '../../state/events.ts';
import { keys } from '../../state/keys.ts';
import { type Change, emptyPlan, type Plan } from '../../state/plan.ts';
import type { HostRestoreRecord } from '../../state/records.ts';
import type { Entry, RecordChange, Snapshot } from '../../state/snapshot.ts';
import { type Controller, keysOfKind, sleepMsMax } from '../controller.ts';

/** For people who look at how it went. */
const keptMs = 7 * 86_400_000;

export const restore: Controller = {
  name: 'restore',
  watches: ['hostRestore', 'instance', 'host'],
  wakes(change, snapshot) {
    if (change.kind === 'hostRestore') return change.after === null ? [] : [change.key];
    return hostsOf(change).flatMap((host) => {
      const key = keys.hostRestore(host);
      const known = snapshot.get('hostRestore', key)?.value;
      const isRemoved = change.kind === 'host' && change.after === null;
      return known && (known.phase === 'Restoring' || isRemoved) ? [key] : [];
    });
  },
  keys: (snapshot) => keysOfKind(snapshot, 'hostRestore'),
  reconcile(snapshot, key, ctx) {
    const entry = snapshot.get('hostRestore', key);
    if (!entry) return emptyPlan;
    const { value } = entry;
    const host = snapshot.get('host', keys.host(value.host))?.value;
    const keptForMs = (value.endedAtMs ?? ctx.nowMs) + keptMs - ctx.nowMs;
    if (host?.metadata.id !== value.hostId || keptForMs <= 0)
      return { changes: [{ key, ifRevision: entry.revision, value: null }] };
    if (value.phase !== 'Restoring') return { changes: [], requeueAfterMs: Math.min(keptForMs, sleepMsMax) };
    if (isDraining(host)) return { changes: cancelledRestore(snapshot, entry, 'the host is drained', ctx).changes };
    return step(snapshot, entry, ctx);
  },
};

/** Where the instance is, and where it moves to or was to move to. */
function hostsOf({ before, after }: RecordChange): string[] {
  const record = after ?? before;
  if (record?.kind === 'host') return [record.metadata.name];
  if (record?.kind !== 'instance') return [];
  const { host, migration } = record.status;
  return [...new Set([host, migration?.to])].filter((name) => name !== undefined);
}

/** Notes what is back, and begins one more while fewer return than may. */
function step(snapshot: Snapshot, entry: Entry<HostRestoreRecord>, ctx: Context): Plan {
  const { value } = entry;
  const leftMs = value.deadlineAtMs - ctx.nowMs;
  const seen = value.guests.map((guest) => seenGuest(snapshot, value.host, guest));
  if (leftMs <= 0) return ended(snapshot, entry, { guests: seen.map(overdue), changes: [] }, ctx);
  const returning = seen.filter(({ progress }) => progress === 'leaving').length;
  const next = returning < value.options.movesMax ? seen.findIndex(({ progress }) => progress === 'waiting') : -1;
  const guest = seen[next];
  const begun = guest && begin(snapshot, value.host, guest, ctx);
  const guests = begun ? seen.with(next, begun.guest) : seen;
  const changes = begun?.changes ?? [];
  if (!guests.some(({ progress }) => progress === 'waiting' || progress === 'leaving'))
    return ended(snapshot, entry, { guests, changes }, ctx);
  const changed = guests.some(({ progress }, i) => progress !== value.guests[i]?.progress);
  const record: Change = { key: entry.key, ifRevision: entry.revision, value: { ...value, guests } };
  return { changes: [...(changed ? [record] : []), ...changes], requeueAfterMs: Math.min(leftMs, sleepMsMax) };
}

function seenGuest(snapshot: Snapshot, host: string, guest: PlannedGuest): PlannedGuest {
  if (guest.progress !== 'waiting' && guest.progress !== 'leaving') return guest;
  const instance = snapshot.instanceById(guest.id)?.value;
  if (instance === undefined || instance.metadata.deletionRequestedAtMs !== undefined)
    return { ...guest, progress: 'done', message: 'it was removed meanwhile' };
  if (instance.status.host === host) return { ...guest, progress: 'done' };
  if (guest.progress === 'waiting' || openMigration(instance)?.to === host) return guest;
  const { migration } = instance.status;
  const message = (migration?.to === host ? migration.message : undefined) ?? 'it was placed elsewhere meanwhile';
  return { ...guest, progress: 'failed', message };
}

function begin(
  snapshot: Snapshot,
  host: string,
  guest: PlannedGuest,
  ctx: Context,
): { readonly guest: PlannedGuest; readonly changes: readonly Change[] } {
  const { project, name, id } = guest;
  const drainedFrom = snapshot.instanceById(id)?.value.status.drainedFrom;
  const options = { to: host, ...(isLive(guest) ? { live: true } : {}) };
  try {
    if (drainedFrom?.host !== host)
      throw new ApiError('Conflict', 'its user has moved it since, or it was placed again');
    const { changes } = beginMigration(snapshot, { project, name, options, drainedFrom }, ctx).plan;
    return { guest: { ...guest, progress: 'leaving' }, changes };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return { guest: { ...guest, progress: 'failed', message: error.message }, changes: [] };
  }
}

function overdue(guest: PlannedGuest): PlannedGuest {
  if (guest.progress === 'leaving')
    return { ...guest, progress: 'left', message: 'the deadline was over; its move goes on' };
  return guest.progress === 'waiting' ? { ...guest, progress: 'left', message: 'the deadline was over' } : guest;
}

function ended(
  snapshot: Snapshot,
  { key, revision, value }: Entry<HostRestoreRecord>,
  { guests, changes }: { readonly guests: PlannedGuest[]; readonly changes: readonly Change[] },
  ctx: Context,
): Plan {
  const { host } = value;
  const left = guests.filter(({ progress }) => progress !== 'done').length;
  const phase = left === 0 ? ('Restored' as const) : ('Incomplete' as const);
  const record = snapshot.get('host', keys.host(host))?.value;
  const news =
    left === 0
      ? { reason: 'Restored', message: 'what drains had moved away is back', host }
      : {
          ...{ type: 'Warning' as const, reason: 'RestoreIncomplete', host },
          message: `${left} of ${guests.length} did not return: "berth host restore ${host} --status"`,
        };
  return {
    changes: [
      { key, ifRevision: revision, value: { ...value, guests, phase, endedAtMs: ctx.nowMs } },
      ...changes,
      ...(record ? [eventChange(record, news, ctx)] : []),
    ],
  };
}
