// The plan of an update of a workload, or of its undo: what changes in its template, which copies are replaced, and how many at a time. It is
// shown by a dry run, and applied by its hash.

import { type Static, Type } from 'typebox';

const closed = { additionalProperties: false } as const;

/** Of the copies that a plan lists. */
export const rolloutCopiesShownMax = 100;
/** Of the hosts that a plan lists. */
export const rolloutHostsShownMax = 1_000;

export const RolloutPlan = Type.Object(
  {
    verb: Type.Enum(['update', 'undo']),
    workload: Type.String(),
    workloadId: Type.String(),
    project: Type.String(),
    hash: Type.String({ description: 'names this plan when it is applied' }),
    changes: Type.Array(
      Type.Object(
        { field: Type.String(), before: Type.Optional(Type.Unknown()), after: Type.Optional(Type.Unknown()) },
        closed,
      ),
      { description: 'fields of the spec that differ; values that may be secret are hidden' },
    ),
    revision: Type.Object({ before: Type.Integer(), after: Type.Integer() }, closed),
    replicas: Type.Object(
      { before: Type.Integer(), after: Type.Integer() },
      { ...closed, description: 'copies that are wanted' },
    ),
    strategy: Type.Enum(['RollingUpdate', 'Recreate']),
    surge: Type.Integer({ description: 'copies above the wanted number at a time' }),
    unavailable: Type.Integer({ description: 'copies below the wanted number at a time' }),
    paused: Type.Boolean({ description: 'nothing is replaced until the workload is resumed' }),
    replaced: Type.Integer({ description: 'copies of another template, which are replaced' }),
    kept: Type.Integer({ description: 'copies that have the template already' }),
    created: Type.Integer({ description: 'copies that the number asks for, when the template stays as it is' }),
    removed: Type.Array(Type.String({ description: 'name of an instance' }), {
      description: 'copies above the number, when the template stays as it is; the first to go comes first',
    }),
    hosts: Type.Array(
      Type.Object(
        { host: Type.Optional(Type.String({ description: 'absent: none yet' })), copies: Type.Integer() },
        closed,
      ),
      { maxItems: rolloutHostsShownMax, description: 'where the copies are now that are replaced' },
    ),
    copies: Type.Array(
      Type.Object({ instance: Type.String(), host: Type.Optional(Type.String()), revision: Type.Integer() }, closed),
      { maxItems: rolloutCopiesShownMax, description: 'copies that are replaced; at most 100' },
    ),
  },
  closed,
);
export type RolloutPlan = Static<typeof RolloutPlan>;
