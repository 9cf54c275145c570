// An agent's report on one volume. Only a report by the volume's host, in its current session, changes anything.

import type { VolumeReport, VolumeSeen } from '../../../api/agent-protocol.ts';
import { equalJson } from '../../../base/equal-json.ts';
import { ApiError } from '../../../api/errors.ts';
import {
  type Volume,
  type VolumePhase,
  type VolumeSpec,
  type VolumeStatus,
  volumeSnapshotsMax,
} from '../../../api/resources/volume.ts';
import { type Held, release } from '../../ledger/ledger.ts';
import { type NewCondition, withConditions } from '../../state/conditions.ts';
import type { Context } from '../../state/context.ts';
import { eventChange, type NewEvent } from '../../state/events.ts';
import { notFoundAfterRestore } from '../../state/guest-phase.ts';
import { keys } from '../../state/keys.ts';
import type { Change, Plan } from '../../state/plan.ts';
import type { Allocation } from '../../state/records.ts';
import type { Entry, Snapshot } from '../../state/snapshot.ts';
import { volumeStatusChange } from '../../state/volume-change.ts';
import { heldGiB, volumeAllocationKey } from '../../state/volumes.ts';
import { hostInSession } from '../host.ts';
import type { ReportDecision } from '../report.ts';
import { mayBeMore, volumeAssignmentOf } from './volume-assignment.ts';
import { growRoomOfVolume } from './volume-room.ts';

const stale: ReportDecision = { plan: { changes: [] }, result: 'stale' };

/** Throws `StaleEpoch` when the session has ended. */
export function applyVolumeReport(
  snapshot: Snapshot,
  input: { readonly host: string; readonly epoch: number; readonly report: VolumeReport },
  ctx: Context,
): ReportDecision {
  const host = hostInSession(snapshot, input.host, input.epoch);
  const { report } = input;
  const held = snapshot.allocationsOfConsumer(report.volumeId);
  const allocation = held.find(({ value }) => value.host === input.host && value.consumer.kind === 'volume');
  if (!allocation) return stale;
  const { consumer } = allocation.value;
  const found = snapshot.get('volume', keys.volume(consumer.project, consumer.name));
  const volume = found?.value.metadata.id === consumer.id ? found : undefined;
  const decided =
    report.volume.state === 'absent'
      ? applyAbsence(allocation, volume, ctx)
      : applySeen(snapshot, { allocation, volume }, { ...input, seen: report.volume }, ctx);
  if (decided.plan.changes.length === 0) return decided;
  const conditions = [...(decided.plan.conditions ?? []), { key: host.key, ifRevision: host.revision }];
  return { ...decided, plan: { ...decided.plan, conditions } };
}

function applyAbsence(allocation: Entry<Allocation>, volume: Entry<Volume> | undefined, ctx: Context): ReportDecision {
  const { want } = volumeAssignmentOf(allocation, volume);
  if (want === 'kept' && volume) return { plan: notFound(volume, ctx), result: 'accepted' };
  if (want !== 'absent') return stale;
  return {
    plan: {
      changes: release(allocation),
      conditions: volume ? [{ key: volume.key, ifRevision: volume.revision }] : [],
    },
    result: 'accepted',
  };
}

/** The host does not have the volume that the backup names: a created volume is lost, another can still be created. */
function notFound(volume: Entry<Volume>, ctx: Context): Plan {
  const { status } = volume.value;
  const message = status.made
    ? `host ${status.host} has nothing of it since the store was restored: it was deleted after the backup was made`
    : `host ${status.host} has not begun yet`;
  const ready: NewCondition = {
    type: 'Ready',
    status: 'False',
    reason: status.made ? notFoundAfterRestore : 'NotStarted',
    message,
  };
  const conditions = withConditions(status.conditions, [ready], ctx.nowMs);
  return {
    changes: [volumeStatusChange(volume, { ...status, phase: status.made ? 'Failed' : 'Creating', conditions })],
  };
}

function applySeen(
  snapshot: Snapshot,
  { allocation, volume }: { readonly allocation: Entry<Allocation>; readonly volume: Entry<Volume> | undefined },
  input: { readonly host: string; readonly epoch: number; readonly report: VolumeReport; readonly seen: VolumeSeen },
  ctx: Context,
): ReportDecision {
  const { report, epoch, host, seen } = input;
  if (!volume || volume.value.status.host !== host || allocation.key !== volumeAllocationKey(volume.value))
    return stale;
  const { spec, grown } = withFound(snapshot, volume.value, seen);
  if (!spec) return stale;
  const { metadata, status } = volume.value;
  const last = status.report;
  if (last && (epoch < last.epoch || (epoch === last.epoch && report.sequence <= last.sequence))) return stale;
  const next: VolumeStatus = {
    ...status,
    phase: phaseOf(volume.value, seen),
    made: status.made || seen.state === 'ready',
    volume: seen,
    report: { epoch, sequence: report.sequence },
    observedGeneration: Math.max(status.observedGeneration, Math.min(report.observedGeneration, metadata.generation)),
    conditions: withConditions(status.conditions, [conditionOf(seen)], ctx.nowMs),
  };
  const done = seen.state === 'ready' && seen.reason === undefined && report.observedGeneration >= metadata.generation;
  const smaller = done && grown.length === 0 ? givenBack(allocation, heldGiB(spec)) : [];
  const news = newsOf(status, next, seen);
  return {
    plan: {
      changes: [
        { ...volumeStatusChange(volume, next), value: { ...volume.value, spec, status: next } },
        ...grown,
        ...smaller,
        ...(news ? [eventChange(volume.value, { ...news, host }, ctx)] : []),
      ],
    },
    result: 'accepted',
  };
}

/**
 * Adds to the record, and claims, what the host has of the volume beyond the backup. Without room for that the volume
 * is kept unchanged until there is some.
 */
function withFound(
  snapshot: Snapshot,
  volume: Volume,
  seen: VolumeSeen,
): { readonly spec: VolumeSpec | undefined; readonly grown: readonly Change[] } {
  const { spec } = volume;
  if (!mayBeMore(volume) || seen.state !== 'ready') return { spec, grown: [] };
  const unknown = seen.snapshots.flatMap(({ name }) => (spec.snapshots.includes(name) ? [] : [name]));
  const found = {
    ...spec,
    sizeGiB: Math.max(spec.sizeGiB, seen.sizeGiB),
    snapshots: [...spec.snapshots, ...unknown].slice(0, volumeSnapshotsMax),
  };
  if (equalJson(found, spec)) return { spec, grown: [] };
  try {
    return { spec: found, grown: growRoomOfVolume(snapshot, { ...volume, spec: found }) };
  } catch (error) {
    if (error instanceof ApiError && error.code === 'Conflict') return { spec: undefined, grown: [] };
    throw error;
  }
}

/** Deleted snapshots release their room. */
function givenBack(allocation: Entry<Allocation>, gib: number): Change[] {
  const [[providerId, held] = []] = Object.entries(allocation.value.amounts);
  if (providerId === undefined || (held?.['DISK_GB'] ?? 0) <= gib) return [];
  const amounts: Held = { [providerId]: { DISK_GB: gib } };
  return [{ key: allocation.key, ifRevision: allocation.revision, value: { ...allocation.value, amounts } }];
}

function phaseOf({ metadata, status }: Volume, seen: VolumeSeen): VolumePhase {
  if (metadata.deletionRequestedAtMs !== undefined) return 'Deleting';
  switch (seen.state) {
    case 'preparing':
      return status.made ? 'Ready' : 'Creating';
    case 'ready':
      return 'Ready';
    case 'failed':
      return 'Failed';
  }
}

function conditionOf(seen: VolumeSeen): NewCondition {
  const { state, reason, message } = seen;
  switch (state) {
    case 'preparing':
      return {
        type: 'Ready',
        status: 'False',
        reason: reason ?? 'Preparing',
        message: message ?? 'its host is creating it',
      };
    case 'ready':
      return { type: 'Ready', status: 'True', reason: reason ?? 'Made', message: message ?? 'it is there' };
    case 'failed':
      return {
        type: 'Ready',
        status: 'False',
        reason: reason ?? 'Failed',
        message: message ?? 'its host gave no reason',
      };
  }
}

function newsOf(before: VolumeStatus, after: VolumeStatus, seen: VolumeSeen): NewEvent | undefined {
  if (after.phase === 'Failed' && before.phase !== 'Failed')
    return { type: 'Warning', reason: seen.reason ?? 'Failed', message: seen.message ?? 'its host gave no reason' };
  if (after.made && !before.made) return { reason: 'Made', message: `${seen.sizeGiB} GiB` };
  if (seen.reason !== undefined && seen.reason !== before.volume?.reason && seen.state === 'ready')
    return { type: 'Warning', reason: seen.reason, message: seen.message ?? 'its host gave no message' };
  if (before.volume && seen.sizeGiB !== before.volume.sizeGiB)
    return { reason: 'Grown', message: `${before.volume.sizeGiB} to ${seen.sizeGiB} GiB` };
  const had = new Set(before.volume?.snapshots.map(({ name }) => name));
  const made = seen.snapshots.find(({ name }) => before.volume && !had.has(name));
  return made && { reason: 'Snapshot', message: `snapshot ${made.name} was created` };
}
