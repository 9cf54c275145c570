// Host: a machine that runs guests. Operators write `spec`; its agent measures, the control plane judges.

import { type Static, Type } from 'typebox';
import { Accelerator } from './guest.ts';
import { Amounts, Condition, Name, type Resource, type ResourceDefinition } from './metadata.ts';

const closed = { additionalProperties: false } as const;

export const HostSpec = Type.Object(
  {
    paused: Type.Boolean({ default: false, description: 'nothing new is placed here; what runs, runs on' }),
    pool: Type.Optional(Name),
    reserved: Type.Optional(Amounts),
    allocationRatios: Type.Record(
      Type.String({ pattern: '^[A-Z][A-Z0-9_]{0,63}$' }),
      Type.Number({ minimum: 0.01, maximum: 1000 }),
      {
        default: {},
        maxProperties: 64,
        additionalProperties: false,
        description: 'how far each resource class may be overcommitted; default 1',
      },
    ),
  },
  closed,
);
export type HostSpec = Static<typeof HostSpec>;

export const HostDriver = Type.Object(
  {
    name: Name,
    available: Type.Boolean(),
    reason: Type.Optional(Type.String({ maxLength: 1024 })),
    accelerator: Type.Optional(Accelerator),
    version: Type.Optional(Type.String({ maxLength: 128 })),
  },
  closed,
);
export type HostDriver = Static<typeof HostDriver>;

export const HostImage = Type.Object(
  {
    name: Type.String({ maxLength: 64 }),
    digest: Type.String({ maxLength: 128, description: 'of the unpacked file; empty when there is a problem' }),
    sizeBytes: Type.Number(),
    key: Type.Optional(Type.String({ maxLength: 64, description: 'of the image as it was wanted when last fetched' })),
    problem: Type.Optional(Type.String({ maxLength: 512, description: 'why it could not be fetched; tried again' })),
  },
  closed,
);
export type HostImage = Static<typeof HostImage>;

/** A guest on the host that the control plane does not know: reported, never touched. */
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

export const HostStatus = Type.Object(
  {
    machineId: Type.Optional(Type.String()),
    bootId: Type.Optional(Type.String()),
    /** One more for every session of its agent; messages of older sessions are refused. Never falls. */
    epoch: Type.Integer({ minimum: 0 }),
    session: Type.Optional(Type.String()),
    architecture: Type.Optional(Type.Enum(['amd64', 'arm64'])),
    /** As the agent measured it. */
    capacity: Type.Optional(Amounts),
    /** What the agent keeps back for the host itself, unless spec says otherwise. */
    reserved: Type.Optional(Amounts),
    drivers: Type.Array(HostDriver),
    images: Type.Array(HostImage),
    unknownGuests: Type.Array(UnknownGuest),
    agentVersion: Type.Optional(Type.String()),
    registeredAtMs: Type.Optional(Type.Integer()),
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
