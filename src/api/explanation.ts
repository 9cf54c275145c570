// Explanation: why an instance is where it is, or why it has no host, and what would change that.

import { type Static, Type } from 'typebox';
import { HeldAmounts } from './resources/metadata.ts';

const closed = { additionalProperties: false } as const;

export const HostExplanation = Type.Object(
  {
    host: Type.String(),
    current: Type.Boolean({ description: 'the instance is on this host' }),
    fits: Type.Boolean(),
    refusals: Type.Array(Type.Object({ rule: Type.String(), reason: Type.String(), message: Type.String() }, closed), {
      description: 'every rule that refuses, not only the first',
    }),
    score: Type.Optional(Type.Number()),
    scores: Type.Optional(Type.Record(Type.String(), Type.Number(), { description: 'by rule, weighed' })),
  },
  closed,
);
export type HostExplanation = Static<typeof HostExplanation>;

export const ReasonExplanation = Type.Object(
  {
    reason: Type.String(),
    rule: Type.String(),
    hosts: Type.Integer({ description: 'that are refused for this reason, perhaps among others' }),
    alone: Type.Integer({ description: 'that are refused only for this reason' }),
    examples: Type.Array(Type.Object({ host: Type.String(), message: Type.String() }, closed)),
  },
  closed,
);
export type ReasonExplanation = Static<typeof ReasonExplanation>;

export const NearestChange = Type.Object(
  {
    change: Type.Enum([
      'AskLess',
      'ResumeHost',
      'HostBack',
      'RemoveTaint',
      'DropRule',
      'InstancesEnd',
      'AddHost',
      'Several',
    ]),
    message: Type.String({ description: 'what to do or to wait for' }),
    hosts: Type.Array(Type.String(), { description: 'where it would then fit, at most five of them' }),
    hostCount: Type.Integer({ minimum: 1, description: 'the number of hosts for which this holds' }),
    cost: Type.Number({ description: 'lower is nearer; docs/explain.md describes the weights' }),
    ask: Type.Optional(HeldAmounts),
    instances: Type.Optional(Type.Array(Type.String(), { description: 'instances that would end, as project/name' })),
  },
  closed,
);
export type NearestChange = Static<typeof NearestChange>;

const RatedHost = Type.Object({ host: Type.String(), score: Type.Number() }, closed);

export const PlacedExplanation = Type.Object(
  {
    decidedAtMs: Type.Optional(Type.Integer()),
    decision: Type.String({ description: 'the explanation when it was placed' }),
    fitsNow: Type.Boolean({ description: 'it would still fit its host' }),
    scoreThen: Type.Optional(Type.Number()),
    scoreNow: Type.Optional(Type.Number()),
    better: Type.Array(RatedHost, { description: 'hosts that would be preferred to its own now, at most three' }),
    runnersUp: Type.Array(RatedHost, { description: 'the best of the others today, at most three' }),
    changes: Type.Array(Type.String(), { description: 'what has changed since it was placed' }),
  },
  closed,
);
export type PlacedExplanation = Static<typeof PlacedExplanation>;

export const QueueExplanation = Type.Object(
  {
    position: Type.Optional(
      Type.Integer({ minimum: 1, description: 'absent when too many wait to compute it quickly' }),
    ),
    waiting: Type.Integer({ description: 'how many wait in all' }),
    ahead: Type.Array(Type.String(), { description: 'the first instances before it, as project/name' }),
    projectShare: Type.Number({ description: 'share of the fleet that its project uses, divided by its weight' }),
  },
  closed,
);
export type QueueExplanation = Static<typeof QueueExplanation>;

export const Explanation = Type.Object(
  {
    instance: Type.String(),
    project: Type.String(),
    phase: Type.String(),
    host: Type.Optional(Type.String()),
    summary: Type.String({ description: '"0 of 12 hosts: 7 InsufficientMemory, 5 DriverMissing"' }),
    profile: Type.String(),
    amounts: HeldAmounts,
    counts: Type.Object({ hosts: Type.Integer(), fit: Type.Integer(), refused: Type.Integer() }, closed),
    reasons: Type.Array(ReasonExplanation, { description: 'the most frequent first' }),
    queue: Type.Optional(QueueExplanation),
    placed: Type.Optional(PlacedExplanation),
    preemption: Type.Optional(
      Type.Object(
        {
          host: Type.String(),
          instances: Type.Array(Type.String(), {
            description:
              'instances that would be preempted for it, as project/name; empty: resources are being released there in any case',
          }),
        },
        { ...closed, description: 'it fits nowhere now, and would preempt instances' },
      ),
    ),
    nearest: Type.Optional(
      Type.Array(NearestChange, { description: 'changes that would make it fit, nearest first; each was tried' }),
    ),
    hosts: Type.Array(HostExplanation, {
      description: 'its own host, then hosts that fit, the best first, then the others',
    }),
    continue: Type.Optional(Type.String({ description: 'for the next hosts; absent on the last page' })),
  },
  closed,
);
export type Explanation = Static<typeof Explanation>;
