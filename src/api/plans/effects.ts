// What a change or a deletion of a pool, an image, a size or a placement group means for what uses it. It is shown before it is applied, and
// applied by its hash.

import { type Static, Type } from 'typebox';

const closed = { additionalProperties: false } as const;

/**
 * CannotPlace: it could not be placed again, or it waits already. CannotReplace: no more copies could be created. LosesRules: what this pool
 * sets no longer applies to it. OverCapacity: it has less capacity than is in use. MountNotAllowed: no pool allows its mounts any more.
 * BreaksRule: it stands against a rule of its group.
 */
export const effectCodes = [
  'CannotPlace',
  'CannotReplace',
  'LosesRules',
  'OverCapacity',
  'MountNotAllowed',
  'BreaksRule',
] as const;

export const ChangeEffect = Type.Object(
  {
    kind: Type.Enum(['host', 'instance', 'workload', 'job']),
    id: Type.String(),
    project: Type.String({ description: 'empty for a host' }),
    name: Type.String(),
    code: Type.Enum([...effectCodes]),
    message: Type.String(),
  },
  closed,
);
export type ChangeEffect = Static<typeof ChangeEffect>;

/** Of one change. Nothing that runs is stopped by it. */
export const Effects = Type.Object(
  {
    hash: Type.String({ description: 'names these effects when the deletion is applied' }),
    count: Type.Integer({ description: 'of all that are affected' }),
    affected: Type.Array(ChangeEffect, { maxItems: 100, description: 'at most 100' }),
  },
  closed,
);
export type Effects = Static<typeof Effects>;

/** In the details of a refusal: the effects that the caller has not seen. */
export const effectsShownMax = 100;
