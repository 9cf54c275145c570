// Host: a machine that runs guests. Operators write `spec`; the agent reports, and the control plane derives, `status`.

import { attemptKinds } from './check.ts';
import { type Static, Type } from 'typebox';
import { Accelerator } from './guest.ts';
import { HostDown, HostState } from './host-state.ts';
import { AllocationRatios, ChildProviders, Taint, Trait } from './host-rules.ts';
import { MaintenanceReport } from './maintenance.ts';
import { Amounts, Condition, Name, ResourceClass, type Resource, type ResourceDefinition } from './metadata.ts';

const closed = { additionalProperties: false } as const;

const Units = Type.Integer({ minimum: 1, maximum: 2 ** 53 - 1 });

/** The operator's values for one resource class of a host, which override the agent's. */
export const InventoryOverride = Type.Object(
  {
    total: Type.Optional(
      Type.Integer({ minimum: 0, maximum: 2 ** 53 - 1, description: 'instead of the measured amount' }),
    ),
    reservedPercent: Type.Optional(
      Type.Number({ minimum: 0, maximum: 100, description: 'of the total, rounded up; `reserved` wins over it' }),
    ),
    minUnit: Type.Optional(Units),
    maxUnit: Type.Optional(Units),
    stepSize: Type.Optional(Units),
  },
  closed,
);
export type InventoryOverride = Static<typeof InventoryOverride>;

export const HostSpec = Type.Object(
  {
    paused: Type.Boolean({ default: false, description: 'nothing new is placed here; running instances stay' }),
    pool: Type.Optional(Name),
    reserved: Type.Optional(Amounts),
    allocationRatios: Type.Unsafe<AllocationRatios>({
      ...AllocationRatios,
      default: {},
      description:
        "how far each resource class may be overcommitted; default: its pool's, then 4 for VCPU and 1 for others",
    }),
    inventory: Type.Optional(
      Type.Record(ResourceClass, InventoryOverride, {
        maxProperties: 64,
        additionalProperties: false,
        description: 'by resource class: how it is allocated; also classes that no agent measures',
      }),
    ),
    providers: Type.Optional(
      Type.Unsafe<Static<typeof ChildProviders>>({
        ...ChildProviders,
        description: 'GPUs and similar, replacing those of the same name that its agent reported',
      }),
    ),
    traits: Type.Optional(
      Type.Array(Trait, { maxItems: 256, description: 'in addition to those that its agent reported' }),
    ),
    taints: Type.Optional(Type.Array(Taint, { maxItems: 64, description: 'taints that keep instances away' })),
    dedicated: Type.Optional(Type.Boolean({ description: 'only for instances that request a dedicated host' })),
    dedicatedTo: Type.Optional(Type.String({ ...Name, description: 'only for instances of this project' })),
    instancesMax: Type.Optional(
      Type.Integer({ minimum: 0, maximum: 1_000_000, description: 'at most this many instances' }),
    ),
    controlPlane: Type.Optional(
      Type.Boolean({
        description:
          'true: the control plane runs here and no instances are placed; false: instances are placed, even if the control plane runs here',
      }),
    ),
  },
  closed,
);
export type HostSpec = Static<typeof HostSpec>;

/** What a host needs packages for: `Boot` says which of them a guest needs. */
export const bootOffers = ['uefi', 'uefi-secure-boot', 'tpm'] as const;
export type BootOffer = (typeof bootOffers)[number];

/** What an agent can give to guests of a driver; agents of earlier versions say nothing. */
const driverOffers = [...attemptKinds, 'mounts', 'migration', 'resize', 'filesystems', 'save', ...bootOffers] as const;
export type DriverOffer = (typeof driverOffers)[number];

/** A live move needs equal values on both hosts. */
export const LiveKind = Type.Object(
  {
    machine: Type.String({ maxLength: 128, description: 'machine type and version' }),
    cpu: Type.String({ maxLength: 128, description: 'CPU model that guests see' }),
    network: Type.String({
      maxLength: 32,
      description: 'network of the guests: they keep their addresses only on a bridge',
    }),
  },
  closed,
);
export type LiveKind = Static<typeof LiveKind>;

export const HostDriver = Type.Object(
  {
    name: Name,
    available: Type.Boolean(),
    reason: Type.Optional(Type.String({ maxLength: 1024 })),
    accelerator: Type.Optional(Accelerator),
    version: Type.Optional(Type.String({ maxLength: 128 })),
    suspends: Type.Optional(Type.Boolean({ description: 'its guests can be suspended; default: they cannot' })),
    runs: Type.Optional(
      Type.Boolean({
        description:
          'its guests can run the program of a job; default: they cannot, as with agents of earlier versions',
      }),
    ),
    live: Type.Optional(Type.Unsafe<LiveKind>({ ...LiveKind, description: 'present when its guests can move live' })),
    offers: Type.Optional(
      Type.Array(Type.Enum([...driverOffers]), {
        maxItems: 16,
        description:
          'kinds of health checks, mounts of containers, moves to other hosts, resizes, volumes with a file system, suspension to disk (save), firmware and TPM; default: none, as with agents of earlier versions',
      }),
    ),
  },
  closed,
);
export type HostDriver = Static<typeof HostDriver>;

export const HostImage = Type.Object(
  {
    name: Type.String({ maxLength: 64 }),
    digest: Type.String({ maxLength: 128, description: 'of the unpacked file; empty when there is a problem' }),
    sizeBytes: Type.Number(),
    key: Type.Optional(
      Type.String({ maxLength: 64, description: 'fingerprint of the image specification when it was last fetched' }),
    ),
    checksum: Type.Optional(
      Type.String({ maxLength: 128, description: 'of the file at the source, as it was fetched' }),
    ),
    guests: Type.Optional(Type.Integer({ minimum: 0, description: "number of guests' disks based on it" })),
    problem: Type.Optional(Type.String({ maxLength: 512, description: 'why it could not be fetched; tried again' })),
  },
  closed,
);
export type HostImage = Static<typeof HostImage>;

/** An unknown guest: a guest on the host without a record. Reported, never touched. */
export const UnknownGuest = Type.Object(
  {
    instanceId: Type.String({ maxLength: 64 }),
    incarnation: Type.Integer(),
    driver: Type.String({ maxLength: 32 }),
    state: Type.String({ maxLength: 32 }),
  },
  closed,
);
export type UnknownGuest = Static<typeof UnknownGuest>;

/** A host of an inventory: its owner's system says what it is. */
export const OutsideHost = Type.Object(
  {
    inventory: Type.String({ ...Name, description: 'the inventory it comes from' }),
    ip: Type.Optional(Type.String({ maxLength: 45 })),
    model: Type.Optional(Type.String({ maxLength: 128 })),
    usage: Type.Unsafe<Amounts>({ ...Amounts, description: 'as reported; part of it may be ours' }),
    reportedAtMs: Type.Integer({ description: 'when a list last changed something here' }),
    missed: Type.Optional(
      Type.Integer({ minimum: 1, description: 'number of consecutive lists that did not contain it' }),
    ),
  },
  { ...closed, description: 'it belongs to another system, has no agent and takes no instances' },
);
export type OutsideHost = Static<typeof OutsideHost>;

export const HostStatus = Type.Object(
  {
    machineId: Type.Optional(Type.String()),
    agentId: Type.Optional(
      Type.String({ description: "data directory of this host's agent; no other agent can register it" }),
    ),
    bootId: Type.Optional(Type.String()),
    maintains: Type.Optional(
      Type.Boolean({ description: 'its agent can run a maintenance command, which ends with a reboot' }),
    ),
    maintenance: Type.Optional(MaintenanceReport),
    address: Type.Optional(Type.String({ description: 'where the machine can be reached, as its agent says' })),
    moveKey: Type.Optional(
      Type.String({ description: 'fingerprint of its certificate for moves, which other hosts verify' }),
    ),
    takesMoves: Type.Optional(Type.Boolean({ description: 'other hosts can connect to it for moves' })),
    leaseMs: Type.Optional(
      Type.Integer({ description: 'how long its guests may run on without an answer, if they asked' }),
    ),
    watchdogMs: Type.Optional(Type.Integer({ description: 'how long its watchdog device waits; absent: it has none' })),
    /** Grows by one with every session of its agent; messages of older sessions are refused. Never falls. */
    epoch: Type.Integer({ minimum: 0 }),
    session: Type.Optional(Type.String()),
    architecture: Type.Optional(Type.Enum(['amd64', 'arm64'])),
    /** As measured by the agent. */
    capacity: Type.Optional(Amounts),
    /** Reserved by the agent for the host itself, unless the spec sets another value. */
    reserved: Type.Optional(Amounts),
    /** Classes of `capacity` and of parts that the agent measured, which hosts on one machine divide. Absent: none. */
    measured: Type.Optional(Type.Array(ResourceClass)),
    diskId: Type.Optional(Type.String({ description: 'the file system that DISK_GB is of' })),
    /** As reported by the agent: properties of the machine, and its parts with inventories of their own. */
    traits: Type.Optional(Type.Array(Trait)),
    providers: Type.Optional(ChildProviders),
    /** A control plane runs on this machine: `shared` takes instances like any other, `excluded` takes none. */
    controlPlane: Type.Optional(Type.Enum(['shared', 'excluded'])),
    drivers: Type.Array(HostDriver),
    images: Type.Array(HostImage),
    unknownGuests: Type.Array(UnknownGuest),
    /** Ids of volumes on the host without a record. Absent: none. */
    unknownVolumes: Type.Optional(Type.Array(Type.String())),
    /** `unknownGuests` is complete: the agent has confirmed that in this session. Only in restored stores. */
    guestsTold: Type.Optional(Type.Boolean()),
    /** Set for hosts of an inventory, which have no agent. */
    outside: Type.Optional(OutsideHost),
    agentVersion: Type.Optional(Type.String()),
    credential: Type.Optional(
      Type.Enum(['certificate', 'host-token'], {
        description:
          'how its agent authenticates; host-token: never expires; "berth agent join" replaces it with a certificate. Absent when the servers use plain HTTP',
      }),
    ),
    registeredAtMs: Type.Optional(Type.Integer()),
    state: Type.Optional(HostState),
    down: Type.Optional(HostDown),
    conditions: Type.Array(Condition),
  },
  closed,
);
export type HostStatus = Static<typeof HostStatus>;

export type Host = Resource<'host', HostSpec, HostStatus>;

export const hostDefinition = {
  kind: 'host',
  plural: 'hosts',
  idPrefix: 'host',
  scope: 'fleet',
  description: 'A machine that runs guests.',
  name: Name,
  spec: HostSpec,
  status: HostStatus,
  verbs: ['create', 'replace', 'delete'],
} as const satisfies ResourceDefinition;
