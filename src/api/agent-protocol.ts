// The protocol between agent and control plane. Both sides validate it: neither trusts the other's bytes.
//
//   PUT  /v1/hosts/{host}/session       Registration  -> Session          once per start of the agent, again when StaleEpoch
//   POST /v1/hosts/{host}/heartbeat     Heartbeat     -> {}               every session.heartbeatMs
//   GET  /v1/hosts/{host}/assignments   ?epoch=       -> lines of AssignmentEvent, endless
//   POST /v1/hosts/{host}/reports       Reports       -> ReportResults

import { type Static, Type } from 'typebox';
import { bootFields } from './instances/firmware.ts';
import { Accelerator, GuestPort, GuestState, Phase, PublishedPort } from './resources/guest.ts';
import { HostDriver, HostImage, UnknownGuest } from './resources/host.ts';
import { ChildProviders, Trait } from './resources/host-rules.ts';
import { Checks } from './resources/check.ts';
import { Container, containersMax } from './resources/container.ts';
import { ImageSpec } from './resources/image.ts';
import { imageCredentials } from './resources/image-credential.ts';
import { GuestStatus, StartAgain } from './resources/instance.ts';
import { RunSpec } from './resources/run.ts';
import { Fingerprint, MoveAddress } from './resources/migration.ts';
import { Amounts, Labels, ResourceClass } from './resources/metadata.ts';
import { MaintenanceReport } from './resources/maintenance.ts';
import { GuestUsageReport } from './guests/guest-usage.ts';
import { VolumeSeen, VolumeSpec } from './resources/volume.ts';

export { Accelerator, GuestPort, GuestState, GuestStatus, ImageSpec, Phase, PublishedPort, VolumeSeen };

/** The form of an agent's identity, as made by `newId('agent', ...)`. */
export const agentIdPattern = '^agent_[0-9a-z]{26}$';

const closed = { additionalProperties: false } as const;
const VolumeId = Type.String({ pattern: '^vol_[0-9a-z]{26}$' });

export const Registration = Type.Object(
  {
    /** Random for each start of the agent, to tell a repeated registration from a second agent. */
    session: Type.String({ minLength: 8, maxLength: 64 }),
    machineId: Type.String({
      minLength: 1,
      maxLength: 128,
      description: 'of the machine; a host of this name on another machine is refused',
    }),
    agentId: Type.String({
      pattern: agentIdPattern,
      description:
        '"agent_" and 26 characters, made once in the data directory of an agent; a host of another agent is refused',
    }),
    bootId: Type.String({ maxLength: 128 }),
    maintains: Type.Optional(
      Type.Boolean({ description: 'its configuration names a command for its maintenance, which ends with a reboot' }),
    ),
    address: Type.Optional(Type.String({ maxLength: 45, description: 'where the machine can be reached' })),
    moveKey: Type.Optional(
      Type.Unsafe<string>({ ...Fingerprint, description: 'of its certificate for moves, which other hosts verify' }),
    ),
    takesMoves: Type.Optional(Type.Boolean({ description: 'other hosts can connect to it for moves; default: false' })),
    watchdogMs: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 3_600_000,
        description: 'a watchdog device resets the machine this long after its lease has ended with guests left',
      }),
    ),
    architecture: Type.Enum(['amd64', 'arm64']),
    /** Measured from the machine: VCPU, MEMORY_MB, DISK_GB and any CUSTOM_*. */
    capacity: Amounts,
    /** Reserved for the host itself; used unless the operator sets another value. */
    reserved: Amounts,
    /** Classes whose amounts the agent measured: hosts on one machine divide them. Earlier versions of the agent omit this. */
    measured: Type.Optional(Type.Array(ResourceClass, { maxItems: 64 })),
    diskId: Type.Optional(
      Type.String({
        maxLength: 64,
        description: 'the file system that DISK_GB is of; the same for hosts that share it',
      }),
    ),
    /** Properties of the machine: HW_*, CUSTOM_*. */
    traits: Type.Optional(Type.Array(Trait, { maxItems: 256 })),
    /** Parts with an inventory of their own: GPUs, NUMA cells. Included in `capacity`, where that has the class. */
    providers: Type.Optional(ChildProviders),
    /** Used only at the first registration of the host. */
    labels: Labels,
    drivers: Type.Array(HostDriver, { maxItems: 16 }),
    images: Type.Array(HostImage, { maxItems: 1024 }),
    agentVersion: Type.String({ maxLength: 64 }),
  },
  closed,
);
export type Registration = Static<typeof Registration>;

export const Session = Type.Object(
  {
    hostId: Type.String(),
    epoch: Type.Integer(),
    heartbeatMs: Type.Integer({ description: 'send a heartbeat this often' }),
    offlineAfterMs: Type.Integer({ description: 'a host without heartbeats for this long is lost' }),
    takesUsage: Type.Optional(
      Type.Boolean({ description: 'heartbeats may have `usage`; servers of earlier versions refuse it' }),
    ),
  },
  closed,
);
export type Session = Static<typeof Session>;

/** The maximum number in a heartbeat. */
export const unknownGuestsMax = 256;

export const Heartbeat = Type.Object(
  {
    epoch: Type.Integer(),
    images: Type.Optional(Type.Array(HostImage, { maxItems: 1024 })),
    drivers: Type.Optional(Type.Array(HostDriver, { maxItems: 16 })),
    unknownGuests: Type.Optional(Type.Array(UnknownGuest, { maxItems: unknownGuestsMax })),
    /** Volumes without an assignment. */
    unknownVolumes: Type.Optional(Type.Array(VolumeId, { maxItems: unknownGuestsMax })),
    guestsTold: Type.Optional(
      Type.Boolean({
        description: 'its list of unknown guests is complete, and it knows its assignments',
      }),
    ),
    usage: Type.Optional(GuestUsageReport),
    maintenance: Type.Optional(MaintenanceReport),
    notReady: Type.Optional(
      Type.Object(
        {
          stopping: Type.Boolean({ description: 'only its next session opens the host again' }),
          message: Type.String({ maxLength: 512 }),
        },
        { ...closed, description: 'why the host takes no new instances now; its guests run on' },
      ),
    ),
  },
  closed,
);
export type Heartbeat = Static<typeof Heartbeat>;

export const HeartbeatAnswer = Type.Object(
  {
    maintain: Type.Optional(
      Type.String({
        maxLength: 64,
        description: 'run the maintenance command of your configuration, once for this id; the host is empty',
      }),
    ),
  },
  closed,
);
export type HeartbeatAnswer = Static<typeof HeartbeatAnswer>;

/**
 * One container of an instance, with all references resolved. Its ports are among those of the assignment: all
 * containers share one network.
 */
export const AssignedContainer = Type.Object(
  {
    name: Container.properties.name,
    imageName: Type.String(),
    /** Absent: the image no longer exists. */
    image: Type.Optional(ImageSpec),
    command: Container.properties.command,
    args: Container.properties.args,
    env: Container.properties.env,
    cpus: Container.properties.cpus,
    memoryMiB: Container.properties.memoryMiB,
    mounts: Container.properties.mounts,
    stopGraceMs: Container.properties.stopGraceMs,
  },
  closed,
);
export type AssignedContainer = Static<typeof AssignedContainer>;

/** A volume of this host that belongs to an instance. */
export const AssignedVolume = Type.Object(
  { volumeId: VolumeId, name: Type.String(), readOnly: Type.Boolean() },
  closed,
);
export type AssignedVolume = Static<typeof AssignedVolume>;

/** The files of a guest that moves to another host: `disk` and ids of volumes. */
export const MoveManifest = Type.Object(
  {
    id: Type.String({ maxLength: 64, description: 'of the migration' }),
    files: Type.Array(
      Type.Object(
        {
          name: Type.String({ pattern: '^(disk|vol_[0-9a-z]{26})$' }),
          sizeBytes: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
        },
        closed,
      ),
      { maxItems: 64 },
    ),
  },
  closed,
);
export type MoveManifest = Static<typeof MoveManifest>;

/** What a running guest consists of. The target of a live move must have exactly the same. */
export const LiveMachine = Type.Object(
  {
    /** In the driver's terms: versions, machine type, processor, devices with their bus addresses. */
    parts: Type.Array(Type.String({ maxLength: 256 }), { maxItems: 256 }),
    disks: Type.Array(
      Type.Object(
        {
          name: Type.String({ pattern: '^(disk|vol_[0-9a-z]{26})$' }),
          sizeBytes: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
          /** Of a volume: the name that the guest sees, and its bus address. */
          label: Type.Optional(Type.String({ maxLength: 63 })),
          slot: Type.Optional(Type.Integer({ minimum: 0, maximum: 31 })),
        },
        closed,
      ),
      { maxItems: 64 },
    ),
    memoryMiB: Type.Integer({ minimum: 1 }),
    /** What the source knows of the guest and the guest does not report again. */
    ready: Type.Boolean(),
    address: Type.Optional(Type.String({ maxLength: 45 })),
    startedAtMs: Type.Optional(Type.Number()),
  },
  closed,
);
export type LiveMachine = Static<typeof LiveMachine>;

/** The part of a host in the move of a guest. */
export const AssignedMigration = Type.Object(
  {
    id: Type.String({ maxLength: 64 }),
    /** incoming: `copy` once the guest is stopped on its host. outgoing: the target may read its files. */
    role: Type.Enum(['incoming', 'outgoing']),
    copy: Type.Boolean(),
    /** A live move: the guest keeps running until its memory has arrived. Absent: a cold move. */
    live: Type.Optional(Type.Literal(true)),
    /** Ids of the volumes that move with it. */
    volumes: Type.Array(VolumeId),
    bytesPerSecondMax: Type.Optional(Type.Integer({ minimum: 1 })),
    /** The two hosts may connect to each other. */
    direct: Type.Optional(
      Type.Object(
        {
          peer: Type.Unsafe<string>({ ...Fingerprint, description: 'of the certificate of the other host' }),
          at: Type.Optional(Type.Unsafe<MoveAddress>({ ...MoveAddress, description: 'of the target' })),
        },
        closed,
      ),
    ),
  },
  closed,
);
export type AssignedMigration = Static<typeof AssignedMigration>;

/**
 * The whole desired state of one incarnation of one instance on this host. `absent`: delete everything, then report it
 * absent. `kept`: start and stop nothing, and report what exists; a control plane that was restored from a backup does
 * not know. `incoming`: start nothing, and receive its files from the host where it is now.
 */
export const Assignment = Type.Object(
  {
    instanceId: Type.String({ pattern: '^inst_[0-9a-z]{26}$' }),
    incarnation: Type.Integer({ minimum: 1 }),
    /** Grows with each change of this assignment. */
    revision: Type.Integer({ minimum: 1 }),
    want: Type.Enum(['running', 'suspended', 'stopped', 'absent', 'kept', 'incoming']),
    /** With `suspended`: its memory goes to a file, and its guest ends. */
    suspendTo: Type.Optional(Type.Literal('disk')),
    driver: Type.String(),
    name: Type.String(),
    project: Type.String(),
    hostname: Type.String(),
    /** Reported back as observedGeneration. */
    generation: Type.Integer(),
    cpus: Type.Integer(),
    memoryMiB: Type.Integer(),
    diskGiB: Type.Integer(),
    imageName: Type.String(),
    image: Type.Optional(ImageSpec),
    ...bootFields,
    ports: Type.Array(GuestPort),
    sshKeys: Type.Array(Type.String()),
    userData: Type.String(),
    /** A program that the guest runs once. */
    run: Type.Optional(RunSpec),
    /** For a container image: the containers, of which the first holds the shared network. */
    containers: Type.Optional(Type.Array(AssignedContainer, { minItems: 1, maxItems: containersMax })),
    /** Volumes besides its own disk. They can be attached and detached while it runs. */
    volumes: Type.Optional(Type.Array(AssignedVolume, { minItems: 1 })),
    checks: Type.Optional(Checks),
    /** For its images; the values are among `secrets`. */
    imageCredentials: Type.Optional(imageCredentials),
    /** By secret and key: the values that the environments and credentials name. Absent: they name none. */
    secrets: Type.Optional(Type.Record(Type.String(), Type.Record(Type.String(), Type.String()))),
    stopGraceMs: Type.Integer(),
    /** It may run only while the host has a lease. */
    selfStop: Type.Optional(Type.Boolean()),
    startAgain: Type.Optional(StartAgain),
    migration: Type.Optional(AssignedMigration),
    /** The newest resize: a guest with an older one is stopped, and gets the amounts of this assignment. Absent: none. */
    resized: Type.Optional(Type.Integer({ minimum: 1 })),
    /** The incarnation that its disk was made for: what a guest knows itself by stays as it was then. */
    diskIncarnation: Type.Optional(Type.Integer({ minimum: 1 })),
  },
  closed,
);
export type Assignment = Static<typeof Assignment>;

/** Grows when the volume moves to another host, so that one that comes back is told from the one that left. */
const life = Type.Optional(Type.Integer({ minimum: 2, description: 'absent: 1' }));

/**
 * The whole desired state of one volume on this host. `absent`: delete it once no guest uses it, then report it absent.
 * `kept`: create and delete nothing, and report what exists.
 */
export const VolumeAssignment = Type.Object(
  {
    volumeId: VolumeId,
    /** Grows with each change of this assignment. */
    revision: Type.Integer({ minimum: 1 }),
    want: Type.Enum(['present', 'absent', 'kept']),
    name: Type.String(),
    project: Type.String(),
    /** Reported back as observedGeneration. */
    generation: Type.Integer(),
    sizeGiB: VolumeSpec.properties.sizeGiB,
    snapshots: VolumeSpec.properties.snapshots,
    /** Absent: a disk. */
    format: Type.Optional(Type.Literal('filesystem')),
    /** On the same host. */
    source: Type.Optional(Type.Object({ volumeId: VolumeId, snapshot: Type.String() }, closed)),
    /** It has existed here: if it is missing now, its data is lost, and an empty one in its place would hide that. */
    made: Type.Boolean(),
    life,
  },
  closed,
);
export type VolumeAssignment = Static<typeof VolumeAssignment>;

/**
 * `sync` comes first and contains everything up to its `revision`; then one `put` or `drop` for each change; `ping`
 * shows that the connection is alive. The `revision` of the others is at least that of their content; a later `sync`
 * with a lower revision comes from a control plane that lags.
 */
export const AssignmentEvent = Type.Union([
  Type.Object(
    {
      type: Type.Literal('sync'),
      revision: Type.Integer(),
      assignments: Type.Array(Assignment),
      /** Absent: none. */
      volumes: Type.Optional(Type.Array(VolumeAssignment)),
    },
    closed,
  ),
  Type.Object({ type: Type.Literal('put'), revision: Type.Integer(), assignment: Assignment }, closed),
  Type.Object(
    { type: Type.Literal('drop'), revision: Type.Integer(), instanceId: Type.String(), incarnation: Type.Integer() },
    closed,
  ),
  Type.Object({ type: Type.Literal('put-volume'), revision: Type.Integer(), volume: VolumeAssignment }, closed),
  Type.Object({ type: Type.Literal('drop-volume'), revision: Type.Integer(), volumeId: VolumeId, life }, closed),
  Type.Object({ type: Type.Literal('ping'), revision: Type.Integer() }, closed),
]);
export type AssignmentEvent = Static<typeof AssignmentEvent>;

/** `absent`: nothing of this incarnation is left on the host; its room can be released. */
export const Report = Type.Object(
  {
    instanceId: Type.String({ pattern: '^inst_[0-9a-z]{26}$' }),
    incarnation: Type.Integer({ minimum: 1 }),
    /** Grows with each report of a session. */
    sequence: Type.Integer({ minimum: 1 }),
    observedGeneration: Type.Integer({ minimum: 0 }),
    guest: Type.Union([GuestStatus, Type.Object({ state: Type.Literal('absent') }, closed)]),
  },
  closed,
);
export type Report = Static<typeof Report>;

/** `absent`: nothing of this volume is left on the host; its room can be released. */
export const VolumeReport = Type.Object(
  {
    volumeId: VolumeId,
    /** Grows with each report of a session, reports on guests included. */
    sequence: Type.Integer({ minimum: 1 }),
    observedGeneration: Type.Integer({ minimum: 0 }),
    volume: Type.Union([VolumeSeen, Type.Object({ state: Type.Literal('absent') }, closed)]),
  },
  closed,
);
export type VolumeReport = Static<typeof VolumeReport>;

export const Reports = Type.Object(
  {
    epoch: Type.Integer(),
    reports: Type.Array(Report, { maxItems: 256 }),
    volumes: Type.Optional(Type.Array(VolumeReport, { maxItems: 256 })),
  },
  closed,
);
export type Reports = Static<typeof Reports>;

/** In the order of the reports. `stale`: the report was outdated and changed nothing. */
export const ReportResults = Type.Object(
  {
    results: Type.Array(Type.Enum(['accepted', 'stale'])),
    /** For the reports on volumes. */
    volumes: Type.Optional(Type.Array(Type.Enum(['accepted', 'stale']))),
  },
  closed,
);
export type ReportResults = Static<typeof ReportResults>;
