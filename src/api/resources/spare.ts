// Spare: a machine that is prepared ahead on a host with room, by a provisioner, and held until it is released or its time is over.

import { type Static, Type } from 'typebox';
import { Condition, DottedName, Name, type Resource, type ResourceDefinition } from './metadata.ts';
import { AskSpec } from './task.ts';

const closed = { additionalProperties: false } as const;

const Port = Type.Integer({ minimum: 1, maximum: 65_535 });

/** How it is known that it can be used. */
export const SpareReady = Type.Object(
  {
    http: Type.Optional(
      Type.Object(
        {
          url: Type.String({
            pattern: '^https?://[^\\s]+$',
            maxLength: 1024,
            description: 'asked with GET; {address} and {name} stand for those of the spare',
          }),
          status: Type.Optional(Type.Integer({ minimum: 100, maximum: 599, description: 'default: 200 to 299' })),
        },
        closed,
      ),
    ),
    tcp: Type.Optional(
      Type.Object(
        {
          port: Port,
          address: Type.Optional(Type.String({ minLength: 1, maxLength: 255, description: "default: the spare's" })),
        },
        closed,
      ),
    ),
    kubernetes: Type.Optional(
      Type.Object(
        {
          cluster: Type.String({ ...Name, description: 'a cluster of the configuration of the servers' }),
          node: Type.Optional(
            Type.String({ ...DottedName, description: 'its name as a node; default: that of the spare' }),
          ),
        },
        closed,
      ),
    ),
    timeoutMs: Type.Integer({
      default: 600_000,
      minimum: 1_000,
      maximum: 86_400_000,
      description: 'not ready after this time: it fails and is released',
    }),
    periodMs: Type.Integer({ default: 5_000, minimum: 100, maximum: 600_000, description: 'how often it is asked' }),
  },
  { ...closed, description: 'one of http, tcp and kubernetes' },
);
export type SpareReady = Static<typeof SpareReady>;

export const SpareSpec = Type.Object(
  {
    ...AskSpec.properties,
    provisioner: Type.String({
      ...Name,
      description: 'vm: an instance of the image, or a provisioner of the configuration of the servers',
    }),
    variables: Type.Record(
      Type.String({ pattern: '^[A-Za-z_][A-Za-z0-9_]{0,62}$' }),
      Type.String({ maxLength: 4096 }),
      { default: {}, maxProperties: 64, additionalProperties: false, description: 'for the provisioner' },
    ),
    ready: Type.Optional(SpareReady),
    ttlMs: Type.Integer({
      minimum: 1_000,
      maximum: 30 * 24 * 3_600_000,
      description: 'how long it is held, counted from when it is ready',
    }),
    whenFull: Type.Optional(Type.Enum(['wait', 'fail'], { description: 'while no host has room; default: fail' })),
    waitMs: Type.Optional(
      Type.Integer({
        minimum: 1_000,
        maximum: 30 * 24 * 3_600_000,
        description: 'with whenFull wait: it fails when no host has room in this time; default: one day',
      }),
    ),
    attemptsMax: Type.Integer({ default: 3, minimum: 1, maximum: 20, description: 'how often it is provisioned' }),
    provisionMs: Type.Integer({
      default: 3_600_000,
      minimum: 1_000,
      maximum: 86_400_000,
      description: 'making it takes longer: it fails and is released; releasing it takes longer: that is tried again',
    }),
  },
  closed,
);
export type SpareSpec = Static<typeof SpareSpec>;

/**
 * Pending → Provisioning → Checking → Ready → Releasing → Released; Failed: it could not be made, and what was made of it is undone;
 * Unknown: it cannot be found out what became of a step, so that a person decides.
 */
export const SparePhase = Type.Enum([
  'Pending',
  'Provisioning',
  'Checking',
  'Ready',
  'Releasing',
  'Released',
  'Failed',
  'Unknown',
]);
export type SparePhase = Static<typeof SparePhase>;

/** It holds nothing any more. */
export function isEnded(phase: SparePhase): boolean {
  return phase === 'Released' || phase === 'Failed';
}

/** How long one waits for room that may. */
export const waitMsDefault = 24 * 3_600_000;

/** The provisioner that needs no configuration: an instance of ours. */
export const builtInProvisioner = 'vm';

export const SpareStatus = Type.Object(
  {
    phase: SparePhase,
    host: Type.Optional(Type.String({ description: 'name of the host on which it is' })),
    task: Type.Optional(Type.String({ description: 'id of the task that holds its room' })),
    instance: Type.Optional(Type.String({ description: 'id of the instance that it is' })),
    name: Type.Optional(Type.String({ maxLength: 253, description: 'as its provisioner calls it' })),
    address: Type.Optional(Type.String({ maxLength: 253 })),
    attempt: Type.Integer({ minimum: 0, description: 'of the present step, from 1 on; 0: none yet' }),
    /** Written before the step begins. */
    attemptAtMs: Type.Optional(Type.Integer()),
    nextAttemptAtMs: Type.Optional(Type.Integer()),
    claimedTerm: Type.Optional(
      Type.Integer({ description: 'of the first server that carried out the attempt; missing: none has begun it' }),
    ),
    provisionedAtMs: Type.Optional(Type.Integer()),
    readyAtMs: Type.Optional(Type.Integer()),
    heldUntilMs: Type.Optional(Type.Integer({ description: 'milliseconds since 1970' })),
    /** While it is released: whether it has failed, and why. */
    failure: Type.Optional(Type.String({ maxLength: 1024 })),
    endedAtMs: Type.Optional(Type.Integer()),
    conditions: Type.Array(Condition),
  },
  closed,
);
export type SpareStatus = Static<typeof SpareStatus>;

export type Spare = Resource<'spare', SpareSpec, SpareStatus>;

export const spareDefinition = {
  kind: 'spare',
  plural: 'spares',
  idPrefix: 'spare',
  scope: 'project',
  description: 'A machine that is prepared ahead and held.',
  name: Name,
  spec: SpareSpec,
  status: SpareStatus,
  verbs: ['create', 'delete'],
} as const satisfies ResourceDefinition;
