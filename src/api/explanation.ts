// Explanation: why an instance is where it is, or why it is nowhere, host by host.

import { type Static, Type } from 'typebox';
import { Amounts } from './resources/metadata.ts';

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

export const Explanation = Type.Object(
  {
    instance: Type.String(),
    project: Type.String(),
    phase: Type.String(),
    host: Type.Optional(Type.String()),
    summary: Type.String({ description: '"0 of 12 hosts: 7 InsufficientMemory, 5 DriverMissing"' }),
    profile: Type.String(),
    amounts: Amounts,
    hosts: Type.Array(HostExplanation),
  },
  closed,
);
export type Explanation = Static<typeof Explanation>;
