// What users do with volumes: create, replace (grow, make and delete snapshots), delete. The agent creates them on
// their host.

import { equalJson } from '../../../base/equal-json.ts';
import { ApiError } from '../../../api/errors.ts';
import {
  isScheduledSnapshot,
  type Volume,
  type VolumeSpec,
  type VolumeStatus,
  volumeSnapshotsMax,
} from '../../../api/resources/volume.ts';
import { chargeVolume, dischargeQuota } from '../../queue/quotas.ts';
import { conditionOf, withConditions } from '../../state/conditions.ts';
import type { Context } from '../../state/context.ts';
import { eventChange } from '../../state/events.ts';
import { keys } from '../../state/keys.ts';
import type { Entry, Snapshot } from '../../state/snapshot.ts';
import { schemaVersion } from '../../state/upgrade.ts';
import { holderOf, volumeAllocationKey } from '../../state/volumes.ts';
import { assertCron, assertTimeZone } from '../../times/assert-times.ts';
import { scheduleFrom } from '../../times/scheduled-times.ts';
import { assertFree, type CreateInput, earlierCreate, newMetadata, rememberCreate } from '../create.ts';
import { alreadyDone, type Decision } from '../decision.ts';
import { assertNotDeleting, isDeleting, requestDeletion } from '../deletion.ts';
import { assertNotMigrating } from '../instances/migrate.ts';
import { type DeleteInput, existing, replacedMetadata, type ReplaceInput } from '../replace.ts';
import { growRoomOfVolume, roomForVolume } from './volume-room.ts';

export function createVolume(snapshot: Snapshot, input: CreateInput<VolumeSpec>, ctx: Context): Decision {
  const earlier = earlierCreate(snapshot, input, 'volume');
  if (earlier) return earlier;
  assertSnapshotSchedule(input.spec);
  const source = input.spec.source && sourceOf(snapshot, input.project, input.spec, input.spec.source);
  const key = keys.volume(input.project, input.name);
  assertFree(snapshot, 'volume', key, input.name);
  const host = source?.value.status.host ?? input.spec.host;
  if (host !== undefined && input.spec.format === 'filesystem') assertMakes(snapshot, host);
  const id = ctx.newId('vol');
  const volume: Volume = {
    kind: 'volume',
    schemaVersion,
    metadata: newMetadata(id, input, ctx),
    spec: input.spec,
    status: {
      phase: host === undefined ? 'Pending' : 'Creating',
      ...(host === undefined ? {} : { host }),
      made: false,
      observedGeneration: 0,
      ...snapshotTimesOf(input.spec, ctx.nowMs),
      conditions: withConditions(
        [],
        [
          host === undefined
            ? {
                type: 'Ready',
                status: 'False',
                reason: 'WaitsForInstance',
                message: 'it is created on the host of the first instance that uses it',
              }
            : { type: 'Ready', status: 'False', reason: 'NotStarted', message: `host ${host} has not started it yet` },
        ],
        ctx.nowMs,
      ),
    },
  };
  return {
    plan: {
      changes: [
        { key, ifRevision: 0, value: volume },
        ...(host === undefined ? [] : roomForVolume(snapshot, volume, host)),
        ...chargeVolume(snapshot, volume),
        ...rememberCreate(input, 'volume', { key, id }, ctx),
        eventChange(volume, { reason: 'Accepted', message: 'accepted', ...(host === undefined ? {} : { host }) }, ctx),
      ],
      // Neither the host nor the snapshot may disappear in the meantime.
      conditions: [
        ...(host === undefined
          ? []
          : [{ key: keys.host(host), ifRevision: snapshot.get('host', keys.host(host))?.revision ?? 0 }]),
        ...(source ? [{ key: source.key, ifRevision: source.revision }] : []),
      ],
    },
    key,
    changed: true,
  };
}

/** A host that is there: an agent of an earlier version does not know such volumes. */
function assertMakes(snapshot: Snapshot, host: string): void {
  const record = snapshot.get('host', keys.host(host))?.value;
  if (record === undefined || record.status.drivers.some(({ offers }) => offers?.includes('filesystems') === true))
    return;
  throw invalid(
    'spec.host',
    `host "${host}" makes no volumes for containers: it needs an agent of this version, run as root, with the driver container`,
  );
}

function sourceOf(
  snapshot: Snapshot,
  project: string,
  spec: VolumeSpec,
  { volume: name, snapshot: state }: NonNullable<VolumeSpec['source']>,
): Entry<Volume> {
  const source = snapshot.get('volume', keys.volume(project, name));
  if (!source || source.value.metadata.deletionRequestedAtMs !== undefined)
    throw invalid(
      'spec.source.volume',
      `there is no volume "${name}" in project ${project}; "berth volume ls" lists them`,
    );
  const { spec: own, status } = source.value;
  if ((own.format ?? 'disk') !== (spec.format ?? 'disk'))
    throw invalid('spec.format', `volume "${name}" is of format ${own.format ?? 'disk'}, and so is its copy`);
  assertStays(snapshot, source.value);
  if (!own.snapshots.includes(state) || !status.volume?.snapshots.some((each) => each.name === state))
    throw invalid(
      'spec.source.snapshot',
      own.snapshots.includes(state)
        ? `snapshot "${state}" of volume "${name}" has not been created yet`
        : `volume "${name}" has no snapshot "${state}"; it has ${own.snapshots.join(', ') || 'none'}`,
    );
  if (spec.sizeGiB < own.sizeGiB)
    throw invalid('spec.sizeGiB', `volume "${name}" has ${own.sizeGiB} GiB, and its copy cannot have fewer`);
  if (spec.host !== undefined && spec.host !== status.host)
    throw invalid('spec.host', `volume "${name}" is on host ${status.host}, and so is its copy; leave the host out`);
  return source;
}

/** Snapshots of its schedule stay, also when the new spec does not name them. */
export function replaceVolume(snapshot: Snapshot, input: ReplaceInput<VolumeSpec>, ctx: Context): Decision {
  const before = existing(snapshot, 'volume', keys.volume(input.project, input.name), input.ifRevision).value.spec;
  assertSnapshotSchedule(input.spec);
  const kept =
    input.spec.snapshotSchedule && before.snapshotSchedule ? before.snapshots.filter(isScheduledSnapshot) : [];
  const snapshots = [...new Set([...input.spec.snapshots, ...kept])];
  if (snapshots.length > volumeSnapshotsMax)
    throw invalid(
      'spec.snapshots',
      `a volume has at most ${volumeSnapshotsMax} snapshots, those of its schedule included`,
    );
  return changeVolume(snapshot, { ...input, spec: { ...input.spec, snapshots } }, ctx);
}

/** With exactly these snapshots. */
export function changeVolume(snapshot: Snapshot, input: ReplaceInput<VolumeSpec>, ctx: Context): Decision {
  const key = keys.volume(input.project, input.name);
  const entry = existing(snapshot, 'volume', key, input.ifRevision);
  const { value } = entry;
  assertNotDeleting(value, 'volume');
  for (const field of ['host', 'source', 'format'] as const)
    if (!equalJson(value.spec[field], input.spec[field]))
      throw invalid(`spec.${field}`, `spec.${field} of a volume cannot be changed; create a new volume`);
  if (input.spec.sizeGiB < value.spec.sizeGiB)
    throw invalid(
      'spec.sizeGiB',
      `volume "${input.name}" has ${value.spec.sizeGiB} GiB and cannot shrink: data at its end would be lost`,
    );
  for (const name of value.spec.snapshots)
    if (!input.spec.snapshots.includes(name)) assertNotCopied(snapshot, value, name);
  const specChanged = !equalJson(value.spec, input.spec);
  if (specChanged) assertStays(snapshot, value);
  if (!specChanged && equalJson(value.metadata.labels, input.labels)) return alreadyDone(entry);
  const next: Volume = {
    ...value,
    metadata: replacedMetadata(value.metadata, { labels: input.labels, specChanged }),
    spec: input.spec,
    status: equalJson(value.spec.snapshotSchedule ?? null, input.spec.snapshotSchedule ?? null)
      ? value.status
      : withSnapshotTimes(value.status, input.spec, ctx.nowMs),
  };
  return {
    plan: {
      changes: [
        { key, ifRevision: entry.revision, value: next },
        ...growRoomOfVolume(snapshot, next),
        ...(specChanged ? chargeVolume(snapshot, next, value) : []),
        ...(specChanged
          ? [eventChange(next, { reason: 'Changed', message: changeOf(value.spec, next.spec) }, ctx)]
          : []),
      ],
    },
    key,
    changed: true,
  };
}

function withSnapshotTimes(status: VolumeStatus, spec: VolumeSpec, nowMs: number): VolumeStatus {
  const { snapshotTimes: _, ...rest } = status;
  return { ...rest, ...snapshotTimesOf(spec, nowMs) };
}

function snapshotTimesOf({ snapshotSchedule }: VolumeSpec, nowMs: number): Pick<VolumeStatus, 'snapshotTimes'> {
  return snapshotSchedule === undefined ? {} : { snapshotTimes: scheduleFrom(snapshotSchedule, nowMs) };
}

function assertSnapshotSchedule({ snapshotSchedule }: VolumeSpec): void {
  if (snapshotSchedule === undefined) return;
  assertTimeZone(snapshotSchedule.timeZone, 'spec.snapshotSchedule.timeZone');
  assertCron(snapshotSchedule.cron, 'spec.snapshotSchedule.cron');
}

function assertStays(snapshot: Snapshot, volume: Volume): void {
  const holder = holderOf(snapshot, volume);
  if (holder) assertNotMigrating(holder, `volume "${volume.metadata.name}" cannot be changed`);
}

function changeOf(before: VolumeSpec, after: VolumeSpec): string {
  const words = [
    ...(before.sizeGiB === after.sizeGiB ? [] : [`grows from ${before.sizeGiB} to ${after.sizeGiB} GiB`]),
    ...after.snapshots.filter((name) => !before.snapshots.includes(name)).map((name) => `snapshot ${name} requested`),
    ...before.snapshots
      .filter((name) => !after.snapshots.includes(name))
      .map((name) => `deletion of snapshot ${name} requested`),
  ];
  return words.join(', ') || 'other settings of its snapshots';
}

/** A copy of the snapshot that is not made yet needs it. */
function assertNotCopied(snapshot: Snapshot, { metadata }: Volume, name?: string): void {
  for (const { value } of snapshot.list('volume')) {
    const { source } = value.spec;
    if (value.metadata.project !== metadata.project || source?.volume !== metadata.name || value.status.made) continue;
    if (name !== undefined && source.snapshot !== name) continue;
    if (value.metadata.deletionRequestedAtMs !== undefined) continue;
    throw new ApiError(
      'Conflict',
      `volume "${value.metadata.name}" is being created from snapshot "${source.snapshot}" of volume "${metadata.name}"; wait until it is ready`,
      name === undefined ? {} : { field: 'spec.snapshots' },
    );
  }
}

/**
 * Refused while an instance has it. Its host deletes it with all its snapshots; the record stays until that is done.
 */
export function deleteVolume(snapshot: Snapshot, input: DeleteInput, ctx: Context): Decision {
  const key = keys.volume(input.project, input.name);
  const entry = existing(snapshot, 'volume', key, input.ifRevision);
  const { value } = entry;
  if (isDeleting(value)) return alreadyDone(entry);
  const holder = holderOf(snapshot, value);
  if (holder)
    throw new ApiError(
      'Conflict',
      `volume "${input.name}" is attached to instance "${holder.value.metadata.name}"; "berth volume detach ${input.name}" detaches it`,
    );
  assertNotCopied(snapshot, value);
  if (snapshot.allocationsOfConsumer(value.metadata.id).length === 0)
    return {
      plan: {
        changes: [
          { key, ifRevision: entry.revision, value: null },
          ...dischargeQuota(snapshot, value),
          eventChange(value, { reason: 'Deleted', message: 'it was on no host' }, ctx),
        ],
        conditions: [{ key: volumeAllocationKey(value), ifRevision: 0 }],
      },
      key,
      changed: true,
    };
  const deleting: Volume = {
    ...value,
    status: {
      ...value.status,
      phase: 'Deleting',
      conditions: withConditions(
        value.status.conditions,
        [
          {
            type: 'Ready',
            status: 'False',
            reason: 'Deleting',
            message: `host ${value.status.host} is to remove it; until then ${conditionOf(value.status.conditions, 'Ready')?.message ?? 'it is there'}`,
          },
        ],
        ctx.nowMs,
      ),
    },
  };
  return requestDeletion({ ...entry, value: deleting }, 'deletion requested', ctx);
}

const invalid = (field: string, message: string): ApiError => new ApiError('InvalidRequest', message, { field });
