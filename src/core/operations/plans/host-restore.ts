// What operators do with the restore of a host: show its plan, apply it by its hash, cancel it. The controller `restore` carries it out.

import { ApiError } from '../../../api/errors.ts';
import type { PlannedGuest } from '../../../api/plans/host-plan.ts';
import type { HostRestore, HostRestorePlan, RestoreOptions } from '../../../api/plans/host-restore.ts';
import type { Host } from '../../../api/resources/host.ts';
import { openMigration } from '../../migrations/migration-state.ts';
import { abort } from '../../migrations/migration-steps.ts';
import { planRestore } from '../../plans/restore.ts';
import { isDraining } from '../../state/conditions.ts';
import type { Context } from '../../state/context.ts';
import { eventChange } from '../../state/events.ts';
import { keys } from '../../state/keys.ts';
import { type Change, type Plan, unchanged } from '../../state/plan.ts';
import type { HostRestoreRecord } from '../../state/records.ts';
import type { Entry, Snapshot } from '../../state/snapshot.ts';
import { existing } from '../replace.ts';

export interface RestoreInput {
  readonly host: string;
  readonly options: RestoreOptions;
}

/** Throws `Conflict` while the host is closed by a drain. */
export function showRestorePlan(snapshot: Snapshot, { host, options }: RestoreInput, ctx: Context): HostRestorePlan {
  const { value } = existing(snapshot, 'host', keys.host(host));
  assertOpen(value);
  return planRestore(snapshot, { host, hostId: value.metadata.id, options }, ctx);
}

function assertOpen(host: Host): void {
  const { name } = host.metadata;
  if (isDraining(host))
    throw new ApiError('Conflict', `host "${name}" is still closed; open it first: berth host drain ${name} --cancel`);
}

/** Throws `Conflict` when the hash is of another plan, and when another restore is under way. */
export function beginRestore(
  snapshot: Snapshot,
  { host, options, hash }: RestoreInput & { readonly hash: string },
  ctx: Context,
): { readonly plan: Plan; readonly begun: HostRestore } {
  const known = snapshot.get('hostRestore', keys.hostRestore(host));
  if (known?.value.phase === 'Restoring') {
    if (known.value.hash === hash) return { plan: unchanged(known), begun: shownRestore(known.value) };
    throw new ApiError(
      'Conflict',
      `host "${host}" is being restored by another plan; "berth host restore ${host} --cancel" ends it`,
      { field: 'apply' },
    );
  }
  const now = showRestorePlan(snapshot, { host, options }, ctx);
  if (now.hash !== hash) {
    const returning = now.guests.filter(({ action }) => action === 'move').length;
    throw new ApiError(
      'Conflict',
      `the plan to restore host "${host}" is no longer as it was shown; now ${returning} of ${now.guests.length} instances would return; look at the plan again`,
      { field: 'apply', details: { hash: now.hash } },
    );
  }
  const { changes, restore } = startedRestore(snapshot, now, ctx);
  return { plan: { changes }, begun: restore };
}

export function startedRestore(
  snapshot: Snapshot,
  { host, hostId, hash, options, guests }: HostRestorePlan,
  ctx: Context,
): { readonly changes: readonly Change[]; readonly restore: HostRestore } {
  const key = keys.hostRestore(host);
  const record = existing(snapshot, 'host', keys.host(host));
  const begun: HostRestoreRecord = {
    ...{ kind: 'hostRestore', host, hostId, hash, options, phase: 'Restoring' },
    ...{ startedAtMs: ctx.nowMs, deadlineAtMs: ctx.nowMs + options.deadlineMs },
    guests: guests.map((guest) => ({ ...guest, progress: guest.action === 'move' ? 'waiting' : 'left' })),
  };
  const message = `instances that drains have moved away return: ${guests.length} to look after`;
  return {
    changes: [
      { key, ifRevision: snapshot.get('hostRestore', key)?.revision ?? 0, value: begun },
      eventChange(record.value, { reason: 'Restoring', message, host }, ctx),
    ],
    restore: shownRestore(begun),
  };
}

/** Throws `NotFound` when the host was never restored. */
export function restoreOf(snapshot: Snapshot, host: string): Entry<HostRestoreRecord> {
  const hostId = snapshot.get('host', keys.host(host))?.value.metadata.id;
  const entry = snapshot.get('hostRestore', keys.hostRestore(host));
  if (entry && entry.value.hostId === hostId) return entry;
  throw new ApiError('NotFound', `host "${host}" is not being restored; "berth host restore ${host}" shows a plan`);
}

/** Harmless a second time, and after its end. Moves that have not committed end; what has returned stays. */
export function cancelRestore(
  snapshot: Snapshot,
  host: string,
  ctx: Context,
): { readonly plan: Plan; readonly ended: HostRestore } {
  const entry = restoreOf(snapshot, host);
  if (entry.value.phase !== 'Restoring') return { plan: unchanged(entry), ended: shownRestore(entry.value) };
  const { changes, ended } = cancelledRestore(snapshot, entry, 'cancelled by its user', ctx);
  return { plan: { changes }, ended: shownRestore(ended) };
}

export function cancelledRestore(
  snapshot: Snapshot,
  entry: Entry<HostRestoreRecord>,
  message: string,
  ctx: Context,
): { readonly changes: readonly Change[]; readonly ended: HostRestoreRecord } {
  const { host } = entry.value;
  const changes: Change[] = [];
  const guests = entry.value.guests.map((guest): PlannedGuest => {
    if (guest.progress === 'waiting') return { ...guest, progress: 'left', message: 'the restore was cancelled' };
    const instance = guest.progress === 'leaving' ? snapshot.instanceById(guest.id) : undefined;
    if (instance === undefined) return guest;
    if (instance.value.status.host === host) return { ...guest, progress: 'done' };
    const migration = openMigration(instance.value);
    if (migration?.to === host) {
      const ended = { step: 'Cancelled', message: `the restore of host ${host} was cancelled` } as const;
      changes.push(...abort(instance, migration, ended, ctx).changes);
    }
    return { ...guest, progress: 'left', message: 'its move was ended' };
  });
  const ended: HostRestoreRecord = { ...entry.value, guests, phase: 'Cancelled', message, endedAtMs: ctx.nowMs };
  const record = snapshot.get('host', keys.host(host))?.value;
  const news = { reason: 'RestoreCancelled', message: `its restore was cancelled: ${message}`, host };
  return {
    ended,
    changes: [
      { key: entry.key, ifRevision: entry.revision, value: ended },
      ...changes,
      ...(record ? [eventChange(record, news, ctx)] : []),
    ],
  };
}

export function shownRestore({ kind: _, ...restore }: HostRestoreRecord): HostRestore {
  return restore;
}
