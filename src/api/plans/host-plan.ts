// Plans about a host: what happens to each thing on it when the host is drained or gone. A plan is shown before it is applied, and is
// applied by its hash.

import { type Static, Type } from 'typebox';
import { Amounts } from '../resources/metadata.ts';

const closed = { additionalProperties: false } as const;

export const planVerbs = ['drain', 'evacuate'] as const;
export type PlanVerb = (typeof planVerbs)[number];

export const DrainOptions = Type.Object(
  {
    stopOthers: Type.Boolean({ default: false, description: 'stop the instances that cannot move' }),
    movesMax: Type.Integer({ default: 2, minimum: 1, maximum: 100, description: 'instances that leave at a time' }),
    deadlineMs: Type.Integer({
      default: 3_600_000,
      minimum: 1_000,
      maximum: 30 * 86_400_000,
      description: 'end the drain after this time, even if instances remain',
    }),
    atDeadline: Type.Enum(['leave', 'stop'], {
      default: 'leave',
      description: 'what happens then to instances that still run here',
    }),
    thenOpen: Type.Optional(Type.Boolean({ description: 'resume the host when the drain ends' })),
  },
  closed,
);
export type DrainOptions = Static<typeof DrainOptions>;

/**
 * replace: its workload creates another copy, then it is removed. move: it is stopped, its disk is copied, and it starts elsewhere. ends: it ends by itself. stop: it is stopped, and its disk stays. restart:
 * it starts elsewhere, with a fresh disk. fails: it is lost. rests: nothing runs, and its disk stays. stays: it cannot leave.
 */
export const guestActions = ['replace', 'move', 'ends', 'stop', 'restart', 'fails', 'rests', 'stays'] as const;

export const PlanReason = Type.Object({ code: Type.String(), message: Type.String() }, closed);
export type PlanReason = Static<typeof PlanReason>;

export const guestProgress = ['waiting', 'leaving', 'done', 'failed', 'left'] as const;

export const PlannedGuest = Type.Object(
  {
    kind: Type.Enum(['instance', 'task', 'volume', 'outside']),
    id: Type.String(),
    project: Type.String(),
    name: Type.String(),
    generation: Type.Integer(),
    incarnation: Type.Integer(),
    action: Type.Enum([...guestActions]),
    target: Type.Optional(Type.String({ description: 'the host that would take it now' })),
    targetId: Type.Optional(Type.String()),
    from: Type.Optional(Type.String({ description: 'in a restore: the host where it is now' })),
    reasons: Type.Array(PlanReason),
    /** What it holds on the host. */
    amounts: Amounts,
    endsAtMs: Type.Optional(Type.Integer({ description: 'when it ends at the latest' })),
    /** Only while the plan is applied. */
    progress: Type.Optional(
      Type.Enum([...guestProgress], { description: 'left: the drain has ended, and it is still here' }),
    ),
    message: Type.Optional(Type.String()),
  },
  closed,
);
export type PlannedGuest = Static<typeof PlannedGuest>;

const actionTexts: Readonly<Record<PlannedGuest['action'], string>> = {
  replace: 'replaced',
  move: 'moved cold',
  ends: 'ends itself',
  stop: 'stopped',
  restart: 'starts again',
  fails: 'lost',
  rests: 'at rest',
  stays: 'cannot move',
};

/** The action as the command line and the dashboard show it (docs/drain.md). */
export function guestActionText({ action, reasons }: Pick<PlannedGuest, 'action' | 'reasons'>): string {
  return action === 'move' && reasons.some(({ code }) => code === 'Live') ? 'moved live' : actionTexts[action];
}

/** Whether all instances would fit elsewhere after the loss of any one host. */
export const Survival = Type.Object(
  {
    survives: Type.Boolean({ description: 'it was shown for each host' }),
    hosts: Type.Integer({ description: 'hosts with instances' }),
    notShown: Type.Array(Type.String(), {
      description: 'hosts whose instances may not fit elsewhere; at most ten',
      maxItems: 10,
    }),
    notShownCount: Type.Integer(),
  },
  closed,
);
export type Survival = Static<typeof Survival>;

export const HostPlan = Type.Object(
  {
    verb: Type.Enum([...planVerbs]),
    host: Type.String(),
    hostId: Type.String(),
    hash: Type.String({ description: 'names this plan when it is applied' }),
    options: DrainOptions,
    madeAtMs: Type.Integer(),
    expiresAtMs: Type.Integer({ description: 'the plan cannot be applied later' }),
    guests: Type.Array(PlannedGuest, { description: 'in the order in which they leave' }),
    room: Type.Record(Type.String(), Type.Object({ capacity: Type.Integer(), free: Type.Integer() }, closed), {
      description: 'of the other hosts afterwards, by resource class',
    }),
    /** Now, and once the plan is applied. */
    before: Survival,
    after: Survival,
  },
  closed,
);
export type HostPlan = Static<typeof HostPlan>;

export const drainPhases = ['Planned', 'Draining', 'Drained', 'Incomplete', 'Cancelled'] as const;

/** A drain that was planned or begun. */
export const HostDrain = Type.Object(
  {
    verb: Type.Enum([...planVerbs]),
    host: Type.String(),
    hostId: Type.String(),
    hash: Type.String(),
    options: DrainOptions,
    phase: Type.Enum([...drainPhases], {
      description:
        'Planned: it was shown only; Drained: nothing runs on the host; Incomplete: it has ended, and something still runs',
    }),
    madeAtMs: Type.Integer(),
    startedAtMs: Type.Optional(Type.Integer()),
    deadlineAtMs: Type.Optional(Type.Integer()),
    endedAtMs: Type.Optional(Type.Integer()),
    guests: Type.Array(PlannedGuest),
  },
  closed,
);
export type HostDrain = Static<typeof HostDrain>;

/** The plan, or the drain that has begun. */
export const DrainAnswer = Type.Object({ plan: Type.Optional(HostPlan), drain: Type.Optional(HostDrain) }, closed);
export type DrainAnswer = Static<typeof DrainAnswer>;
