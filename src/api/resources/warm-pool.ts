// Warm pool: instances of one template that are kept booted ahead, so that a claim gets a usable guest at once.

import { type Static, Type } from 'typebox';
import { CronTimes, TimeZone } from '../times/schedule-fields.ts';
import { Amounts, Condition, Name, type Resource, type ResourceDefinition } from './metadata.ts';
import { WorkloadTemplate } from './workload.ts';

const closed = { additionalProperties: false } as const;

export const warmGuestsMax = 1_000;
export const warmWindowsMax = 32;

const Size = Type.Integer({ minimum: 0, maximum: warmGuestsMax });

export const WarmSchedule = Type.Object(
  {
    timeZone: TimeZone,
    windows: Type.Array(
      Type.Object(
        {
          from: CronTimes('when it begins, as cron has it: minute hour day month weekday'),
          to: CronTimes('when it ends'),
          size: Size,
        },
        closed,
      ),
      {
        minItems: 1,
        maxItems: warmWindowsMax,
        description: 'the first that is open decides; none: `size` of the pool',
      },
    ),
  },
  closed,
);
export type WarmSchedule = Static<typeof WarmSchedule>;

export const WarmPoolSpec = Type.Object(
  {
    template: Type.Unsafe<WorkloadTemplate>({ ...WorkloadTemplate, description: 'of its instances' }),
    size: Type.Integer({
      ...{ default: 1, minimum: 0, maximum: warmGuestsMax },
      description: 'guests that are kept ready',
    }),
    state: Type.Enum(['running', 'suspended'], {
      default: 'running',
      description: 'suspended: a guest is suspended once it is ready, and a claim resumes it',
    }),
    schedule: Type.Optional(WarmSchedule),
    forJobs: Type.Optional(
      Type.Boolean({
        description: 'its guests wait for the program of a job, and only jobs claim them; default: false',
      }),
    ),
    budget: Type.Optional(
      Type.Unsafe<Static<typeof Amounts>>({
        ...Amounts,
        description:
          'by resource class: what the guests that wait may use together; fewer are kept where more would exceed it',
      }),
    ),
    maxAgeMs: Type.Optional(
      Type.Integer({
        minimum: 60_000,
        maximum: 31_536_000_000,
        description: 'a guest that has waited for longer is replaced; default: never',
      }),
    ),
  },
  closed,
);
export type WarmPoolSpec = Static<typeof WarmPoolSpec>;

export const WarmPoolStatus = Type.Object(
  {
    template: Type.Integer({ minimum: 1, description: 'number of the present template; grows with each change of it' }),
    wanted: Type.Integer({ minimum: 0, description: 'by size, schedule and budget' }),
    guests: Type.Integer({ minimum: 0, description: 'that are not claimed' }),
    ready: Type.Integer({ minimum: 0, description: 'that a claim would get' }),
    hits: Type.Integer({ minimum: 0, description: 'claims that got a guest that was ready' }),
    misses: Type.Integer({ minimum: 0, description: 'claims that found none' }),
    /** Guests that failed before they were claimed, in a row: the next one waits. */
    failures: Type.Optional(Type.Object({ count: Type.Integer(), atMs: Type.Integer() }, closed)),
    conditions: Type.Array(Condition),
  },
  closed,
);
export type WarmPoolStatus = Static<typeof WarmPoolStatus>;

export type WarmPool = Resource<'warmPool', WarmPoolSpec, WarmPoolStatus>;

export const warmPoolDefinition = {
  kind: 'warmPool',
  plural: 'warm-pools',
  idPrefix: 'warm',
  scope: 'project',
  description: 'Instances that are kept booted ahead.',
  name: Type.String({ ...Name, maxLength: 48 }),
  spec: WarmPoolSpec,
  status: WarmPoolStatus,
  verbs: ['create', 'replace', 'delete'],
} as const satisfies ResourceDefinition;

/** The label of its instances with the name of their pool; they keep it when they are claimed. */
export const warmPoolLabel = 'berth/warm-pool';

/** Share of claims that got a ready guest, 0 to 1; undefined: no claim yet. */
export function hitRateOf({ hits, misses }: Pick<WarmPoolStatus, 'hits' | 'misses'>): number | undefined {
  return hits + misses === 0 ? undefined : hits / (hits + misses);
}
