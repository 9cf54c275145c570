// The plan of what returns to a host after its maintenance: the instances that drains have moved away. It is shown before it is applied,
// and is applied by its hash.

import { type Static, Type } from 'typebox';
import { DrainOptions, PlannedGuest } from './host-plan.ts';

const closed = { additionalProperties: false } as const;

export const RestoreOptions = Type.Object(
  {
    movesMax: Type.Integer({ ...DrainOptions.properties.movesMax, description: 'instances that return at a time' }),
    deadlineMs: Type.Integer({
      ...DrainOptions.properties.deadlineMs,
      description: 'end the restore after this time, even if instances have not returned',
    }),
  },
  closed,
);
export type RestoreOptions = Static<typeof RestoreOptions>;

const guests = Type.Array(PlannedGuest, { description: 'in the order in which they return' });

export const HostRestorePlan = Type.Object(
  {
    host: Type.String(),
    hostId: Type.String(),
    hash: Type.String({ description: 'names this plan when it is applied' }),
    options: RestoreOptions,
    madeAtMs: Type.Integer(),
    guests,
  },
  closed,
);
export type HostRestorePlan = Static<typeof HostRestorePlan>;

const restorePhases = ['Restoring', 'Restored', 'Incomplete', 'Cancelled'] as const;

/** A restore that has begun. */
export const HostRestore = Type.Object(
  {
    host: Type.String(),
    hostId: Type.String(),
    hash: Type.String(),
    options: RestoreOptions,
    phase: Type.Enum([...restorePhases], {
      description:
        'Restored: each instance of the plan is back, or was removed meanwhile; Incomplete: it has ended, and some are not back',
    }),
    message: Type.Optional(Type.String({ description: 'why it was cancelled' })),
    startedAtMs: Type.Integer(),
    deadlineAtMs: Type.Integer(),
    endedAtMs: Type.Optional(Type.Integer()),
    guests,
  },
  closed,
);
export type HostRestore = Static<typeof HostRestore>;

/** The plan, or the restore that has begun. */
export const RestoreAnswer = Type.Object(
  { plan: Type.Optional(HostRestorePlan), restore: Type.Optional(HostRestore) },
  closed,
);
export type RestoreAnswer = Static<typeof RestoreAnswer>;
