// A record as it returns from a backup. Only the hosts know what happened after the backup, so the record's claims
// about them are not trusted until they report again, and nothing is ordered to be deleted or started twice because of
// what it does not know.

import { expiryOf } from '../../api/instances/lifetime.ts';
import type { Instance } from '../../api/resources/instance.ts';
import type { Volume } from '../../api/resources/volume.ts';
import { conditionOf, type NewCondition, withConditions } from '../state/conditions.ts';
import { hostLost, notFoundAfterRestore, restored } from '../state/guest-phase.ts';
import { scheduledFrom } from './job-templates/job-template.ts';
import type { AnyRecord } from '../state/records.ts';

/**
 * More sessions than any host begins between a backup and its restore: sessions that the backup does not know must be
 * older than every later session.
 */
const sessionsSkipped = 2 ** 20;
/** Time for people to extend an instance again. */
const extendAgainMs = 3_600_000;

export interface RestoreContext {
  readonly nowMs: number;
  /** The newest session of any host that this store has seen, regardless of the backup. */
  readonly newestSession: number;
}

/** Null: the record is not restored. */
export function restoredRecord(record: AnyRecord, { nowMs, newestSession }: RestoreContext): AnyRecord | null {
  const sessionAfter = (session: number): number => Math.max(session, newestSession) + sessionsSkipped;
  switch (record.kind) {
    case 'lease':
    case 'leader':
    case 'leaderLease':
    case 'member':
    case 'cluster':
      return null; // of the earlier store
    case 'dataKey': // of the earlier store, too: what it encrypts was opened
      return null;
    case 'webhookProgress':
    case 'busProgress':
      return null; // its revisions are of the earlier store
    case 'hostRoll':
    case 'hostRestore': // its moves are of the earlier store
    case 'hostPlan': // a restored host is as open as it was; a person drains it again, or opens it
      return null;
    case 'joinToken':
      return null; // it may have been used since
    case 'removedHost':
      return { ...record, lastEpoch: sessionAfter(record.lastEpoch) };
    case 'host': {
      const { session: _, guestsTold: __, unknownVolumes: ___, ...known } = record.status;
      const { state: _state, down: _down, ...status } = known;
      const message = 'its agent has not connected since the store was restored from a backup';
      const ready: NewCondition = { type: 'Ready', status: 'False', reason: restored, message };
      return {
        ...record,
        status: {
          ...status,
          epoch: sessionAfter(status.epoch),
          unknownGuests: [],
          conditions: withConditions(status.conditions, [ready], nowMs),
        },
      };
    }
    case 'instance':
      return restoredInstance(withTimeToExtend(asClaimed(record, nowMs), nowMs), nowMs);
    case 'volume':
      return restoredVolume(record, nowMs);
    case 'jobTemplate': // its times since the backup may have had their jobs
      return { ...record, status: scheduledFrom(record.spec, record.status, nowMs) };
    default:
      return record;
  }
}

/** Its host may have grown it or made snapshots for requests that the backup does not know. */
function restoredVolume(volume: Volume, nowMs: number): Volume {
  const { metadata, status } = volume;
  if (metadata.deletionRequestedAtMs !== undefined || status.host === undefined || status.phase === 'Failed')
    return volume;
  const message = `the store was restored from a backup, and host ${status.host} has not yet reported its state`;
  const ready: NewCondition = { type: 'Ready', status: 'Unknown', reason: restored, message };
  return { ...volume, status: { ...status, conditions: withConditions(status.conditions, [ready], nowMs) } };
}

/** A guest of a warm pool may have been claimed since the backup: it is not claimed a second time, and the pool does not remove it. */
function asClaimed(instance: Instance, nowMs: number): Instance {
  const { warmPool, ...status } = instance.status;
  if (warmPool === undefined) return instance;
  return { ...instance, status: { ...status, claimed: { pool: warmPool.name, atMs: nowMs, warm: true } } };
}

/** Its time may have been extended since the backup: it is not deleted at the earlier time at once. */
function withTimeToExtend(instance: Instance, nowMs: number): Instance {
  const expiresAtMs = expiryOf(instance);
  const earliestMs = nowMs + extendAgainMs;
  if (expiresAtMs === undefined || expiresAtMs >= earliestMs) return instance;
  const { ttlMs: _, ...spec } = instance.spec;
  return { ...instance, spec: { ...spec, expiresAtMs: earliestMs } };
}

function restoredInstance(instance: Instance, nowMs: number): Instance {
  const { status, spec, metadata } = instance;
  if (metadata.deletionRequestedAtMs !== undefined) return instance;
  const bound = status.host !== undefined;
  const waiting = status.phase === 'Pending';
  // A waiting instance may have started somewhere since. Only exclusive instances are held back for that.
  if (!bound && !(waiting && spec.exclusive)) return instance;
  const outOfSight = conditionOf(status.conditions, 'Running')?.reason === hostLost;
  if (spec.exclusive && status.phase === 'Failed' && !outOfSight) return doubted(instance, nowMs);
  if (bound && (status.phase === 'Exited' || (status.phase === 'Failed' && !outOfSight))) return instance;
  const why = {
    reason: restored,
    message: bound
      ? `the store was restored from a backup, and host ${status.host} has not yet reported its state`
      : 'the store was restored from a backup that was made while it waited; it may have been started since: create it again once it runs nowhere',
  };
  const conditions = withConditions(
    status.conditions,
    [
      { type: 'Running', status: bound ? 'Unknown' : 'False', ...why },
      { type: 'Ready', status: bound ? 'Unknown' : 'False', ...why },
    ],
    nowMs,
  );
  return bound
    ? { ...instance, status: { ...status, conditions, ...(outOfSight ? { phase: 'Scheduled' as const } : {}) } }
    : { ...instance, status: { ...status, phase: 'Failed', failedAtMs: nowMs, conditions } };
}

/** It had failed, and may have been started again since: it is not started automatically. */
function doubted(instance: Instance, nowMs: number): Instance {
  const message =
    'it had failed when the backup was made, and may have been started elsewhere since: create it again once it runs nowhere';
  const running: NewCondition = { type: 'Running', status: 'Unknown', reason: notFoundAfterRestore, message };
  const conditions = withConditions(instance.status.conditions, [running], nowMs);
  return { ...instance, status: { ...instance.status, conditions } };
}
