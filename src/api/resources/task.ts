// Task: room held for a limited time without an instance. It is requested and placed like an instance, runs nothing,
// and ends by itself.

import { type Static, Type } from 'typebox';
import { InstanceSpec } from './instance.ts';
import { Amounts, Condition, DottedName, Name, type Resource, type ResourceDefinition } from './metadata.ts';

const closed = { additionalProperties: false } as const;
const { size, cpus, memoryMiB, diskGiB, resources, gpus, numaCells, placement, ports } = InstanceSpec.properties;

/** The part of a spec about room, for any consumer. */
export const AskSpec = Type.Object(
  {
    image: Type.Optional(
      Type.String({ ...DottedName, description: 'only where this image can run; its default resources apply' }),
    ),
    size,
    cpus,
    memoryMiB,
    diskGiB,
    resources,
    gpus,
    numaCells,
    placement,
    ports,
  },
  closed,
);
export type AskSpec = Static<typeof AskSpec>;

export const TaskSpec = Type.Object(
  {
    ...AskSpec.properties,
    ttlMs: Type.Integer({
      minimum: 1_000,
      maximum: 30 * 24 * 3_600_000,
      description: 'how long the resources stay reserved, counted from the reservation',
    }),
    whenFull: Type.Optional(
      Type.Enum(['wait', 'fail'], {
        description: 'while no host has room; fail: the task ends at once and says why; default: wait',
      }),
    ),
  },
  closed,
);
export type TaskSpec = Static<typeof TaskSpec>;

/**
 * Pending → Placed → Expired; Failed: no host had room, or its host was removed. An instance that takes over the room ends the task and its
 * record.
 */
export const TaskPhase = Type.Enum(['Pending', 'Placed', 'Expired', 'Failed']);
export type TaskPhase = Static<typeof TaskPhase>;

export const TaskStatus = Type.Object(
  {
    phase: TaskPhase,
    host: Type.Optional(Type.String({ description: 'name of the host on which it reserves resources' })),
    assigned: Type.Optional(Amounts),
    placedAtMs: Type.Optional(Type.Integer()),
    heldUntilMs: Type.Optional(Type.Integer({ description: 'milliseconds since 1970' })),
    endedAtMs: Type.Optional(Type.Integer()),
    conditions: Type.Array(Condition),
  },
  closed,
);
export type TaskStatus = Static<typeof TaskStatus>;

export type Task = Resource<'task', TaskSpec, TaskStatus>;

export const taskDefinition = {
  kind: 'task',
  plural: 'tasks',
  idPrefix: 'task',
  scope: 'project',
  description: 'Resources reserved for a limited time, without an instance.',
  name: Name,
  spec: TaskSpec,
  status: TaskStatus,
  verbs: ['create', 'delete'],
} as const satisfies ResourceDefinition;
