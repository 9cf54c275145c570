// Candidates: hosts that would take a request now; the question claims nothing.

import { type Static, Type } from 'typebox';
import { ReasonExplanation } from './explanation.ts';
import { HeldAmounts, Labels, Name } from './resources/metadata.ts';
import { AskSpec } from './resources/task.ts';

const closed = { additionalProperties: false } as const;

/** The full form of the question, for what a query string cannot express. */
export const CandidateQuestion = Type.Object(
  {
    project: Type.Optional(Name),
    labels: Labels,
    spec: AskSpec,
    limit: Type.Integer({ minimum: 1, maximum: 1000, default: 20 }),
  },
  closed,
);
export type CandidateQuestion = Static<typeof CandidateQuestion>;

export const Candidates = Type.Object(
  {
    profile: Type.String(),
    amounts: HeldAmounts,
    counts: Type.Object({ hosts: Type.Integer(), fit: Type.Integer() }, closed),
    candidates: Type.Array(
      Type.Object(
        {
          host: Type.String(),
          score: Type.Number(),
          scores: Type.Record(Type.String(), Type.Number(), { description: 'by rule, weighed' }),
          held: Type.Record(Type.String(), HeldAmounts, { description: 'allocations by provider id' }),
        },
        closed,
      ),
      { description: 'the best first' },
    ),
    reasons: Type.Array(ReasonExplanation, { description: 'why the others would not, the most frequent first' }),
  },
  closed,
);
export type Candidates = Static<typeof Candidates>;
