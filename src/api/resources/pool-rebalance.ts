// When plans are made to use fewer hosts of a pool, and what becomes of them: they are shown, or carried out.

import { type Static, Type } from 'typebox';
import { CronTimes, TimeZoneOrUtc } from '../times/schedule-fields.ts';
import { RebalanceOptions } from '../plans/rebalance.ts';

const closed = { additionalProperties: false } as const;
const { pool: _pool, ...options } = RebalanceOptions.properties;

export const PoolRebalance = Type.Object(
  {
    timeZone: TimeZoneOrUtc,
    cron: CronTimes(),
    mode: Type.Enum(['suggest', 'apply'], {
      default: 'suggest',
      description: 'suggest: show the plan, to be applied by its hash; apply: carry it out',
    }),
    paused: Type.Boolean({ default: false, description: 'make no plans; moves in progress go on' }),
    ...options,
    moves: Type.Enum(options.moves.enum, { ...options.moves, default: 'live' }),
    coolDownMs: Type.Integer({ ...options.coolDownMs, default: 6 * 3_600_000 }),
  },
  closed,
);
export type PoolRebalance = Static<typeof PoolRebalance>;

export const PoolRebalanceStatus = Type.Object(
  {
    handled: Type.Integer({ description: 'number of the newest time of the schedule that was decided on' }),
    nextMs: Type.Optional(Type.Integer({ description: 'when the next plan is made' })),
    last: Type.Optional(
      Type.Object(
        {
          atMs: Type.Integer({ description: 'for which time' }),
          outcome: Type.Enum(['Nothing', 'Suggested', 'Started', 'Skipped'], {
            description: 'Nothing: no host can be emptied; Started: its moves have begun; Skipped: no plan was made',
          }),
          message: Type.String(),
          hash: Type.Optional(Type.String({ description: 'of the plan' })),
          hosts: Type.Array(Type.String(), { description: 'those that are emptied' }),
          moves: Type.Integer(),
        },
        { ...closed, description: 'newest time of the schedule' },
      ),
    ),
  },
  closed,
);
export type PoolRebalanceStatus = Static<typeof PoolRebalanceStatus>;

/** The options of its plans. */
export function rebalanceOptionsOf(
  pool: string,
  { budget, thresholdPercent, movesMax, coolDownMs, moves, emptiedMin }: PoolRebalance,
): RebalanceOptions {
  return { pool, budget, thresholdPercent, movesMax, coolDownMs, moves, emptiedMin };
}
