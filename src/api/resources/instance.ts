// Instance: one guest on one host. `spec` is its owner's request; `status` is its current state.

import { type Static, Type } from 'typebox';
import { Checks, FailingCheck } from './check.ts';
import { Container, containersMax } from './container.ts';
import { Accelerator, GuestPort, GuestState, Phase, PublishedPort } from './guest.ts';
import { bootFields, Firmware, firmwareHelp, tpmHelp } from '../instances/firmware.ts';
import { Gpus, hostRuleFields } from './host-rules.ts';
import { HostProof, OnHostLoss, onHostLossHelp } from './host-state.ts';
import {
  CustomResourceClass,
  HeldAmounts,
  Condition,
  DottedName,
  Labels,
  Name,
  type Resource,
  type ResourceDefinition,
} from './metadata.ts';
import { IncomingSeen, Migration, MovedLive } from './migration.ts';
import { AffinityRule, MaxPerHost, rulesMax, SpreadRule } from './placement-rules.ts';
import { imageCredentials } from './image-credential.ts';
import { ProfileName } from './profile.ts';
import { RunSpec, RunStatus } from './run.ts';

const closed = { additionalProperties: false } as const;

/** Per instance: virtual machines have few slots for disks. */
export const instanceVolumesMax = 16;

/** Ten years. */
const lifetimeMsMax = 315_360_000_000;

/** Instances of one project that are placed together, all or none. */
export const Gang = Type.Object(
  { name: Name, size: Type.Integer({ minimum: 1, maximum: 256, description: 'number of its instances' }) },
  { ...closed, description: 'place it together with the others of this name, as soon as all exist and all fit' },
);

export const restartPolicies = ['Never', 'OnFailure', 'Always'] as const;

export const restartDefaults = { healthyMs: 600_000 } as const;

/** How a restart policy is carried out. */
export const Restart = Type.Object(
  {
    delayMs: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 86_400_000,
        description: 'before the first restart, doubled for each in a row; default: restartDelayMs of the server',
      }),
    ),
    delayMsMax: Type.Optional(Type.Integer({ minimum: 0, maximum: 86_400_000, description: 'default: 300000' })),
    limit: Type.Optional(
      Type.Integer({ minimum: 0, maximum: 1_000_000, description: 'restarts in a row; default: no limit' }),
    ),
    healthyMs: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 86_400_000,
        description: 'a guest that ran for so long ends a row of restarts; default: 600000',
      }),
    ),
    disk: Type.Optional(
      Type.Enum(['fresh', 'kept'], {
        description: 'fresh: a new disk on any host; kept: its own disk, on the same host; default: fresh',
      }),
    ),
  },
  closed,
);

export const InstanceSpec = Type.Object(
  {
    image: DottedName,
    size: Type.Optional(DottedName),
    cpus: Type.Optional(Type.Integer({ minimum: 1, maximum: 1024, description: 'default: size, image, pool, then 4' })),
    memoryMiB: Type.Optional(
      Type.Integer({ minimum: 16, maximum: 67_108_864, description: 'default: size, image, pool, then 8192' }),
    ),
    diskGiB: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 1_048_576,
        description: '0: as large as the image; default: size, then image, then 0',
      }),
    ),
    resources: Type.Optional(
      Type.Record(CustomResourceClass, Type.Integer({ minimum: 1, maximum: 2 ** 31 - 1 }), {
        maxProperties: 32,
        additionalProperties: false,
      }),
    ),
    gpus: Type.Optional(Gpus),
    numaCells: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 16,
        description: 'take CPUs and memory in equal parts from this many NUMA cells of the host',
      }),
    ),
    firmware: Type.Optional(
      Type.Unsafe<Firmware>({ ...Firmware, description: `${firmwareHelp}; default: its image's, then bios` }),
    ),
    tpm: Type.Optional(Type.Boolean({ description: `${tpmHelp}; default: its image's, then none` })),
    powerState: Type.Enum(['running', 'suspended', 'stopped'], {
      default: 'running',
      description: 'suspended: its processors are halted and its memory is kept; only for a running instance',
    }),
    suspendTo: Type.Optional(
      Type.Enum(['memory', 'disk'], {
        description:
          'where the memory of a suspended instance is kept; disk: in a file of its host, and its guest uses no memory; default: memory',
      }),
    ),
    restartPolicy: Type.Enum([...restartPolicies], {
      default: 'Never',
      description: 'OnFailure: when its guest failed; Always: also when its guest ended by itself',
    }),
    restart: Type.Optional(Restart),
    starts: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 2 ** 31 - 1,
        description: 'increase it by one to restart an instance that is Exited or Failed, with its own disk; default 0',
      }),
    ),
    priority: Type.Optional(
      Type.Integer({
        minimum: -1000,
        maximum: 1000,
        description: 'queue priority; higher values are placed first; default 0',
      }),
    ),
    preemption: Type.Optional(
      Type.Enum(['Never', 'LowerPriority'], {
        description: 'LowerPriority: if it fits nowhere, preempt instances of lower priority; default Never',
      }),
    ),
    gang: Type.Optional(Gang),
    exclusive: Type.Boolean({
      default: false,
      description: 'start no second copy while the first may still be running',
    }),
    onHostLoss: Type.Optional(
      Type.Unsafe<OnHostLoss>({ ...OnHostLoss, description: `once its host is down: ${onHostLossHelp}` }),
    ),
    selfStop: Type.Optional(
      Type.Boolean({
        description: 'its host stops it when no control plane answers for its lease; default: guests run on',
      }),
    ),
    placement: Type.Object(
      {
        profile: Type.Optional(ProfileName),
        pool: Type.Optional(Name),
        task: Type.Optional(
          Type.String({ ...Name, description: 'take over the resources that this task reserves, on its host' }),
        ),
        group: Type.Optional(Type.String({ ...Name, description: 'its placement group' })),
        affinity: Type.Optional(Type.Array(AffinityRule, { maxItems: rulesMax })),
        antiAffinity: Type.Optional(Type.Array(AffinityRule, { maxItems: rulesMax })),
        spread: Type.Optional(Type.Array(SpreadRule, { maxItems: rulesMax })),
        maxPerHost: Type.Optional(
          Type.Integer({
            ...MaxPerHost,
            description: 'members of its placement group, else instances with all of its labels',
          }),
        ),
        hostLabels: Type.Optional(Labels),
        driver: Type.Optional(Name),
        ...hostRuleFields,
      },
      { additionalProperties: false, default: {} },
    ),
    ports: Type.Array(GuestPort, { default: [], maxItems: 64 }),
    containers: Type.Optional(
      Type.Array(Container, {
        minItems: 1,
        maxItems: containersMax,
        description:
          "for a container image: its containers, which share a network; the first has the instance's ports; default: one container of the image, called main",
      }),
    ),
    checks: Type.Optional(
      Type.Unsafe<Checks>({
        ...Checks,
        description: 'how its host finds out that it has started, is ready and is alive',
      }),
    ),
    imageCredentials: Type.Optional(imageCredentials),
    volumes: Type.Optional(
      Type.Array(
        Type.Object(
          { name: Name, readOnly: Type.Optional(Type.Boolean({ description: 'default: false' })) },
          { ...closed, description: 'a volume of its project' },
        ),
        { minItems: 1, maxItems: instanceVolumesMax, description: 'volumes to attach, in this order' },
      ),
    ),
    ttlMs: Type.Optional(
      Type.Integer({ minimum: 1000, maximum: lifetimeMsMax, description: 'delete it this long after its creation' }),
    ),
    expiresAtMs: Type.Optional(
      Type.Integer({ minimum: 0, maximum: 2 ** 53 - 1, description: 'delete it at this time; not beside ttlMs' }),
    ),
    protected: Type.Optional(
      Type.Boolean({ description: 'refuse its deletion, which it does not prevent otherwise; default: false' }),
    ),
    hostname: Type.Optional(Name),
    sshKeys: Type.Array(
      Type.String({
        pattern:
          '^(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(256|384|521)|sk-ssh-ed25519@openssh\\.com|sk-ecdsa-sha2-nistp256@openssh\\.com) [A-Za-z0-9+/]{32,8000}={0,3}( [^\\r\\n]{0,256})?$',
        description: 'one OpenSSH public key, without options',
      }),
      { default: [], maxItems: 64 },
    ),
    userData: Type.String({ default: '', maxLength: 65_536, description: 'cloud-init user-data' }),
    run: Type.Optional(
      Type.Unsafe<RunSpec>({ ...RunSpec, description: 'a program that its guest runs once; instead of user-data' }),
    ),
    stopGraceMs: Type.Integer({
      default: 30_000,
      minimum: 0,
      maximum: 600_000,
      description: 'time that a guest has to power off',
    }),
  },
  closed,
);
export type InstanceSpec = Static<typeof InstanceSpec>;
export type PowerState = InstanceSpec['powerState'];

/** Whether it needs room and memory; a suspended instance only has paused processors. */
export function isToBeOn({ powerState }: Pick<InstanceSpec, 'powerState'>): boolean {
  return powerState !== 'stopped';
}

/**
 * Pending → Scheduled → Starting → Running ⇄ Suspended → Stopping → Stopped; Exited: the guest powered itself off;
 * Failed: it could not start, died, or its host is lost; Deleting: deletion requested.
 */
export const InstancePhase = Type.Enum([
  'Pending',
  'Scheduled',
  'Starting',
  'Running',
  'Suspended',
  'Stopping',
  'Stopped',
  'Exited',
  'Failed',
  'Deleting',
]);
export type InstancePhase = Static<typeof InstancePhase>;

/** Enough for the tail of a hypervisor's message; an agent truncates longer ones. */
export const guestMessageLengthMax = 4096;

/** Reported by the host's agent. */
export const GuestStatus = Type.Object(
  {
    state: GuestState,
    ready: Type.Boolean(),
    failing: Type.Optional(
      Type.Unsafe<FailingCheck>({ ...FailingCheck, description: 'the check that it does not pass' }),
    ),
    reason: Type.Optional(Type.String({ maxLength: 64 })),
    message: Type.Optional(Type.String({ maxLength: guestMessageLengthMax })),
    address: Type.Optional(Type.String({ maxLength: 64 })),
    ports: Type.Array(PublishedPort, { maxItems: 64 }),
    accelerator: Type.Optional(Accelerator),
    imageDigest: Type.Optional(Type.String({ maxLength: 128 })),
    volumes: Type.Optional(
      Type.Array(Type.String({ maxLength: 64 }), { maxItems: 64, description: 'ids of those it has' }),
    ),
    startedAtMs: Type.Optional(Type.Number()),
    phases: Type.Array(Phase, { maxItems: 32 }),
    progress: Type.Optional(Type.String({ maxLength: guestMessageLengthMax })),
    run: Type.Optional(RunStatus),
    resized: Type.Optional(Type.Integer({ description: 'the newest resize that its host has done' })),
    saved: Type.Optional(
      Type.Literal(true, {
        description: 'it is suspended, its memory is in a file of its host, and nothing of it runs',
      }),
    ),
    incoming: Type.Optional(
      Type.Unsafe<IncomingSeen>({ ...IncomingSeen, description: 'of a guest that moves to this host' }),
    ),
    movedLive: Type.Optional(
      Type.Unsafe<MovedLive>({ ...MovedLive, description: 'of a guest that arrived here while it ran' }),
    ),
  },
  closed,
);
export type GuestStatus = Static<typeof GuestStatus>;

/** An order to start an ended guest again. It applies to that run only: the next end is final again. */
export const StartAgain = Type.Object(
  {
    order: Type.Integer({ minimum: 1, description: 'grows with each order: `spec.starts` and restarts together' }),
    endedRunAtMs: Type.Number({ description: "the guest's `startedAtMs` in the previous run" }),
  },
  closed,
);
export type StartAgain = Static<typeof StartAgain>;

/** Whether a guest ended in the run that its owner has acknowledged: it counts as stopped, and may start. */
export function isToStartAgain(
  { state, startedAtMs }: Pick<GuestStatus, 'state' | 'startedAtMs'>,
  order: StartAgain | undefined,
): boolean {
  return (state === 'exited' || state === 'failed') && order !== undefined && startedAtMs === order.endedRunAtMs;
}

export const InstanceStatus = Type.Object(
  {
    phase: InstancePhase,
    host: Type.Optional(Type.String({ description: 'name of the host it is bound to' })),
    /** Grows by one with every placement; reports of other incarnations are refused. Never falls. */
    incarnation: Type.Integer({ minimum: 0 }),
    restartCount: Type.Integer({ minimum: 0 }),
    /** Absent: none since its creation, or since its owner last started it. */
    restarts: Type.Optional(
      Type.Object(
        {
          inRow: Type.Integer({ minimum: 0, description: 'since its guest last ran long enough' }),
          exhausted: Type.Optional(Type.Boolean({ description: 'their limit is reached' })),
        },
        closed,
      ),
    ),
    observedGeneration: Type.Integer({ minimum: 0 }),
    assigned: Type.Optional(HeldAmounts),
    conditions: Type.Array(Condition),
    /** While it waits: the host reserved for it, and until when. */
    nomination: Type.Optional(Type.Object({ host: Type.String(), untilMs: Type.Integer() }, closed)),
    guest: Type.Optional(GuestStatus),
    startAgain: Type.Optional(StartAgain),
    /** The workload that keeps it. */
    workload: Type.Optional(
      Type.Object(
        {
          name: Type.String(),
          id: Type.String(),
          revision: Type.Integer({ minimum: 1, description: 'of its template' }),
          ordinal: Type.Integer({ minimum: 0, description: 'the same for the copy that replaces it' }),
        },
        closed,
      ),
    ),
    warmPool: Type.Optional(
      Type.Object(
        {
          name: Type.String(),
          id: Type.String(),
          template: Type.Integer({ minimum: 1, description: 'number of the template that it was made of' }),
        },
        { ...closed, description: 'the warm pool that keeps it until it is claimed' },
      ),
    ),
    claimed: Type.Optional(
      Type.Object(
        {
          pool: Type.String({ description: 'name of the warm pool' }),
          atMs: Type.Integer(),
          warm: Type.Boolean({ description: 'false: the pool had no guest ready, and this one was created' }),
        },
        { ...closed, description: 'it was claimed from a warm pool' },
      ),
    ),
    replaced: Type.Optional(
      Type.Object(
        { host: Name, incarnation: Type.Integer(), atMs: Type.Integer(), proof: Type.Optional(HostProof) },
        { ...closed, description: 'the copy on a lost host that this one replaces' },
      ),
    ),
    migration: Type.Optional(Migration),
    drainedFrom: Type.Optional(
      Type.Object(
        { host: Name, hostId: Type.String() },
        { ...closed, description: 'a drain has moved it away from this host, and no other move followed' },
      ),
    ),
    resize: Type.Optional(
      Type.Object(
        {
          order: Type.Integer({ minimum: 1, description: 'grows with each resize' }),
          pending: Type.Boolean({ description: 'its host has not done it yet' }),
        },
        closed,
      ),
    ),
    boot: Type.Optional(
      Type.Object(
        { ...bootFields },
        { ...closed, description: 'firmware and TPM that its guest was placed with; absent: a BIOS, and no TPM' },
      ),
    ),
    diskIncarnation: Type.Optional(
      Type.Integer({ description: 'the incarnation that its disk was made for, on another host' }),
    ),
    evicted: Type.Optional(Type.Boolean({ description: 'its host is drained: its workload is to replace it' })),
    expiryToldMs: Type.Optional(Type.Integer({ description: 'the expiry for which the owner has had an event' })),
    /** Of the newest accepted report: older ones change nothing. */
    report: Type.Optional(Type.Object({ epoch: Type.Integer(), sequence: Type.Integer() }, closed)),
    scheduledAtMs: Type.Optional(Type.Integer()),
    runningAtMs: Type.Optional(Type.Integer()),
    readyAtMs: Type.Optional(Type.Integer()),
    failedAtMs: Type.Optional(Type.Integer({ description: 'also when its guest ended and is to restart' })),
  },
  closed,
);
export type InstanceStatus = Static<typeof InstanceStatus>;

export type Instance = Resource<'instance', InstanceSpec, InstanceStatus>;

export const instanceDefinition = {
  kind: 'instance',
  plural: 'instances',
  idPrefix: 'inst',
  scope: 'project',
  description: 'One guest on one host.',
  name: Name,
  spec: InstanceSpec,
  status: InstanceStatus,
  verbs: ['create', 'replace', 'delete'],
} as const satisfies ResourceDefinition;
