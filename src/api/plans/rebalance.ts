// The plan that empties hosts which are little used, by moving their instances to others. It is shown before it is applied, and is
// applied by its hash, as drains of these hosts which open them again.

import { type Static, Type } from 'typebox';
import { HostDrain, PlannedGuest } from './host-plan.ts';

const closed = { additionalProperties: false } as const;

export const rebalanceMoves = ['replace', 'live', 'cold'] as const;

export const RebalanceOptions = Type.Object(
  {
    pool: Type.Optional(Type.String({ description: 'only hosts of this pool' })),
    budget: Type.Integer({ default: 20, minimum: 1, maximum: 500, description: 'moves in one plan' }),
    thresholdPercent: Type.Integer({
      default: 50,
      minimum: 1,
      maximum: 100,
      description: 'a host of which more is allocated, of any resource, is not emptied',
    }),
    movesMax: Type.Integer({ default: 4, minimum: 1, maximum: 100, description: 'moves at a time' }),
    coolDownMs: Type.Integer({
      default: 3_600_000,
      minimum: 0,
      maximum: 30 * 86_400_000,
      description: 'an instance that was placed later than this ago is not moved',
    }),
    moves: Type.Enum([...rebalanceMoves], {
      default: 'replace',
      description:
        'which instances may leave their hosts. replace: copies of workloads, which are replaced; live: also instances that move while they run; cold: also those that are stopped for their move. Never protected ones',
    }),
    emptiedMin: Type.Integer({
      default: 1,
      minimum: 1,
      maximum: 100,
      description: 'the plan moves nothing when it would empty fewer hosts',
    }),
  },
  closed,
);
export type RebalanceOptions = Static<typeof RebalanceOptions>;

const EmptiedHost = Type.Object(
  {
    host: Type.String(),
    hostId: Type.String(),
    guests: Type.Array(PlannedGuest, { description: 'in the order in which they leave' }),
  },
  closed,
);
export type EmptiedHost = Static<typeof EmptiedHost>;

export const RebalancePlan = Type.Object(
  {
    hash: Type.String({ description: 'names this plan when it is applied' }),
    options: RebalanceOptions,
    hosts: Type.Array(EmptiedHost, { description: 'those that are emptied' }),
    needMigration: Type.Array(EmptiedHost, {
      description:
        'those that could be emptied if their instances were migrated, which the options do not permit; the plan does not touch them',
    }),
    inUse: Type.Object({ before: Type.Integer(), after: Type.Integer() }, { ...closed, description: 'hosts' }),
    moves: Type.Integer(),
  },
  closed,
);
export type RebalancePlan = Static<typeof RebalancePlan>;

/** The plan, or the drains that have begun. */
export const RebalanceAnswer = Type.Object(
  { plan: Type.Optional(RebalancePlan), drains: Type.Optional(Type.Array(HostDrain)) },
  closed,
);
export type RebalanceAnswer = Static<typeof RebalanceAnswer>;
