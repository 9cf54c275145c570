// Volume: a disk independent of instances, on local storage of one host. It is attached to instances, and remains when
// they are deleted.

import { type Static, Type } from 'typebox';
import { CronTimes, TimeZoneOrUtc } from '../times/schedule-fields.ts';
import { Condition, Name, type Resource, type ResourceDefinition } from './metadata.ts';

const closed = { additionalProperties: false } as const;

export const volumeSnapshotsMax = 16;
/** Characters; an agent cuts off more. */
export const volumeMessageLengthMax = 4096;

const volumeFormats = ['disk', 'filesystem'] as const;

export const SnapshotSchedule = Type.Object(
  {
    timeZone: TimeZoneOrUtc,
    cron: CronTimes(),
    keep: Type.Integer({
      default: 7,
      minimum: 1,
      maximum: volumeSnapshotsMax,
      description: 'the oldest of its snapshots is deleted before there would be more',
    }),
  },
  closed,
);
export type SnapshotSchedule = Static<typeof SnapshotSchedule>;

/** Whether a snapshot was made by a schedule. */
export function isScheduledSnapshot(name: string): boolean {
  return /^auto-\d{12}$/.test(name);
}

export const VolumeSpec = Type.Object(
  {
    sizeGiB: Type.Integer({ minimum: 1, maximum: 65_536, description: 'grows, and never shrinks' }),
    host: Type.Optional(
      Type.String({
        ...Name,
        description: 'host to create it on now; default: the host of the first instance that uses it',
      }),
    ),
    source: Type.Optional(
      Type.Object(
        { volume: Name, snapshot: Name },
        { ...closed, description: 'it begins as copy this snapshot, on the same host' },
      ),
    ),
    format: Type.Optional(
      Type.Enum([...volumeFormats], {
        description: 'disk: for virtual machines; filesystem: for containers, which mount it; default: disk',
      }),
    ),
    snapshotSchedule: Type.Optional(
      Type.Unsafe<SnapshotSchedule>({
        ...SnapshotSchedule,
        description:
          'snapshots that are made at times, named auto-TIME; replacing the spec does not remove them meanwhile',
      }),
    ),
    snapshots: Type.Array(Name, {
      default: [],
      maxItems: volumeSnapshotsMax,
      uniqueItems: true,
      description:
        'names of its snapshots: adding a name creates one, removing a name deletes it; each may use as much space as the volume',
    }),
  },
  closed,
);
export type VolumeSpec = Static<typeof VolumeSpec>;

export const VolumeSnapshot = Type.Object({ name: Name, createdAtMs: Type.Number() }, closed);
export type VolumeSnapshot = Static<typeof VolumeSnapshot>;

/**
 * As reported by its host. `reason`: why it is `failed`, or what part of the spec cannot be done now while it is
 * `ready`.
 */
export const VolumeSeen = Type.Object(
  {
    state: Type.Enum(['preparing', 'ready', 'failed']),
    reason: Type.Optional(Type.String({ maxLength: 64 })),
    message: Type.Optional(Type.String({ maxLength: volumeMessageLengthMax })),
    sizeGiB: Type.Integer({ minimum: 0 }),
    usedBytes: Type.Optional(Type.Integer({ minimum: 0, description: 'of the host, snapshots included' })),
    snapshots: Type.Array(VolumeSnapshot, { maxItems: volumeSnapshotsMax }),
    /** The instance whose guest has it open, or will open it at its next start. */
    instanceId: Type.Optional(Type.String({ maxLength: 64 })),
  },
  closed,
);
export type VolumeSeen = Static<typeof VolumeSeen>;

/**
 * Pending: on no host yet → Creating → Ready; Failed: could not be created, or is lost; Deleting: deletion requested.
 */
export const VolumePhase = Type.Enum(['Pending', 'Creating', 'Ready', 'Failed', 'Deleting']);
export type VolumePhase = Static<typeof VolumePhase>;

export const VolumeStatus = Type.Object(
  {
    phase: VolumePhase,
    host: Type.Optional(Type.String({ description: 'name of its host; it moves only with its instance' })),
    life: Type.Optional(Type.Integer({ minimum: 1, description: 'grows with each move to another host; default 1' })),
    /** The instance that has it. Valid only while that instance exists and names the volume. */
    attachedTo: Type.Optional(Type.Object({ instance: Type.String(), id: Type.String() }, closed)),
    /** Its host has reported it ready once: from then on it is never created again, only found or lost. */
    made: Type.Boolean(),
    observedGeneration: Type.Integer({ minimum: 0 }),
    volume: Type.Optional(VolumeSeen),
    snapshotTimes: Type.Optional(
      Type.Object(
        {
          handled: Type.Integer({ description: 'number of the newest time that was decided on' }),
          nextMs: Type.Optional(Type.Integer({ description: 'when the next snapshot is made' })),
        },
        { ...closed, description: 'of its schedule of snapshots' },
      ),
    ),
    /** Of the newest accepted report: older ones change nothing. */
    report: Type.Optional(Type.Object({ epoch: Type.Integer(), sequence: Type.Integer() }, closed)),
    conditions: Type.Array(Condition),
  },
  closed,
);
export type VolumeStatus = Static<typeof VolumeStatus>;

export type Volume = Resource<'volume', VolumeSpec, VolumeStatus>;

export const volumeDefinition = {
  kind: 'volume',
  plural: 'volumes',
  idPrefix: 'vol',
  scope: 'project',
  description: 'A disk that outlives instances, on local storage of one host.',
  name: Name,
  spec: VolumeSpec,
  status: VolumeStatus,
  verbs: ['create', 'replace', 'delete'],
} as const satisfies ResourceDefinition;
