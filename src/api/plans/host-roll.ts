// The plan of the maintenance of several hosts, group by group: each host is emptied, rebooted, opened again, and gets back what had left.
// It is shown before it is applied, and is applied by its hash.

import { type Static, Type } from 'typebox';
import { Name } from '../resources/metadata.ts';
import { DrainOptions, PlannedGuest, PlanReason } from './host-plan.ts';

const closed = { additionalProperties: false } as const;

const { stopOthers, movesMax, deadlineMs } = DrainOptions.properties;

export const RollOptions = Type.Object(
  {
    pool: Type.Optional(Type.Unsafe<string>({ ...Name, description: 'the hosts of this pool' })),
    hosts: Type.Optional(
      Type.Array(Name, { minItems: 1, maxItems: 1_000, uniqueItems: true, description: 'these hosts' }),
    ),
    maxAtOnce: Type.Integer({ default: 1, minimum: 1, maximum: 100, description: 'hosts in maintenance at a time' }),
    stopOthers,
    movesMax: Type.Integer({ ...movesMax, description: 'instances that leave one host at a time' }),
    drainDeadlineMs: Type.Integer({ ...deadlineMs, description: 'a host must be empty after this time' }),
    bootDeadlineMs: Type.Integer({
      ...deadlineMs,
      description: 'an empty host must be back from its reboot after this time, also when a person reboots it',
    }),
    restore: Type.Boolean({ default: true, description: 'move back what has left a host' }),
  },
  closed,
);
export type RollOptions = Static<typeof RollOptions>;

const RollHost = {
  host: Type.String(),
  hostId: Type.String(),
  group: Type.Integer({ minimum: 1, description: 'hosts with one number are in maintenance at the same time' }),
  byCommand: Type.Boolean({
    description: 'its agent runs the maintenanceCommand of its own configuration; false: a person reboots the host',
  }),
};

export const PlannedRollHost = Type.Object(
  {
    ...RollHost,
    guests: Type.Array(PlannedGuest, { description: 'what happens to them now, without the groups before' }),
  },
  closed,
);
export type PlannedRollHost = Static<typeof PlannedRollHost>;

export const BlockedHost = Type.Object(
  { host: Type.String(), hostId: Type.String(), reasons: Type.Array(PlanReason) },
  { ...closed, description: 'the plan leaves it out' },
);
export type BlockedHost = Static<typeof BlockedHost>;

export const RollPlan = Type.Object(
  {
    hash: Type.String({ description: 'names this plan when it is applied' }),
    options: RollOptions,
    madeAtMs: Type.Integer(),
    hosts: Type.Array(PlannedRollHost, { description: 'in their order' }),
    blocked: Type.Array(BlockedHost),
  },
  closed,
);
export type RollPlan = Static<typeof RollPlan>;

/**
 * draining: it is being emptied. maintenance: it is empty, and waits for another boot id. restoring: it is open, and instances return. failed:
 * the roll has stopped here. left: the roll was cancelled before it was done.
 */
const rollSteps = ['waiting', 'draining', 'maintenance', 'restoring', 'done', 'failed', 'left'] as const;

export const RollingHost = Type.Object(
  {
    ...RollHost,
    step: Type.Enum([...rollSteps]),
    failedIn: Type.Optional(Type.Enum(['waiting', 'draining', 'maintenance', 'restoring'])),
    bootId: Type.Optional(Type.String({ description: 'before its reboot' })),
    order: Type.Optional(Type.String({ description: 'the id of what its agent was asked to do' })),
    restoreHash: Type.Optional(Type.String({ description: 'of its restore' })),
    sinceMs: Type.Optional(Type.Integer({ description: 'when its step began' })),
    message: Type.Optional(Type.String()),
  },
  closed,
);
export type RollingHost = Static<typeof RollingHost>;

const rollPhases = ['Rolling', 'Paused', 'Done', 'Failed', 'Cancelled'] as const;

/** A roll that has begun. */
export const HostRoll = Type.Object(
  {
    hash: Type.String(),
    options: RollOptions,
    phase: Type.Enum([...rollPhases], {
      description: 'Paused: no other host begins; Failed: one host has failed, and no other begins until it is resumed',
    }),
    startedAtMs: Type.Integer(),
    endedAtMs: Type.Optional(Type.Integer()),
    hosts: Type.Array(RollingHost, { description: 'in their order' }),
  },
  closed,
);
export type HostRoll = Static<typeof HostRoll>;

/** The plan, or the roll that has begun. */
export const RollAnswer = Type.Object({ plan: Type.Optional(RollPlan), roll: Type.Optional(HostRoll) }, closed);
export type RollAnswer = Static<typeof RollAnswer>;
