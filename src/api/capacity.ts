// Capacity: how many more fit, what strands the rest, and whether the fleet survives the loss of hosts.

import { type Static, Type } from 'typebox';
import { HeldAmounts, Labels, Name } from './resources/metadata.ts';
import { AskSpec } from './resources/task.ts';

const closed = { additionalProperties: false } as const;

export const CapacityQuestion = Type.Object(
  {
    project: Type.Optional(Name),
    labels: Labels,
    spec: Type.Optional(Type.Object({ ...AskSpec.properties }, { ...closed, description: 'absent: every size' })),
    maxAgeMs: Type.Integer({
      minimum: 0,
      maximum: 600_000,
      default: 0,
      description: 'without a spec: accept a cached answer up to this old, for pages that many people have open',
    }),
    losses: Type.Integer({
      minimum: 0,
      maximum: 2,
      default: 0,
      description: 'check whether the fleet survives the loss of this many hosts at once',
    }),
  },
  closed,
);
export type CapacityQuestion = Static<typeof CapacityQuestion>;

const ClassUse = Type.Object({ capacity: Type.Integer(), used: Type.Number() }, closed);

export const PoolUse = Type.Object(
  {
    pool: Type.String({ description: 'empty: hosts in no pool' }),
    hosts: Type.Integer(),
    open: Type.Integer({ description: 'hosts that send heartbeats and are not paused' }),
    classes: Type.Record(Type.String(), ClassUse),
  },
  closed,
);
export type PoolUse = Static<typeof PoolUse>;

export const SizeCapacity = Type.Object(
  {
    size: Type.Optional(Type.String({ description: 'absent: the request itself' })),
    amounts: HeldAmounts,
    more: Type.Integer({ description: 'how many more would fit' }),
    atLeast: Type.Optional(Type.Boolean({ description: 'counting ended there' })),
    pools: Type.Array(Type.Object({ pool: Type.String(), more: Type.Integer() }, closed)),
    free: HeldAmounts,
    stranded: Type.Array(
      Type.Object(
        {
          reason: Type.String(),
          hosts: Type.Integer(),
          free: HeldAmounts,
          examples: Type.Array(Type.Object({ host: Type.String(), message: Type.String() }, closed)),
        },
        closed,
      ),
      {
        description:
          'resources that stay free but unusable for this size once no more fit, by what refuses the next one',
      },
    ),
  },
  closed,
);
export type SizeCapacity = Static<typeof SizeCapacity>;

export const LossCapacity = Type.Object(
  {
    losses: Type.Integer({ description: 'hosts lost at once' }),
    checked: Type.Integer({ description: 'cases that were tried, those with most at stake first' }),
    of: Type.Integer({ description: 'cases there are' }),
    survived: Type.Integer({ description: 'cases in which everything fits elsewhere' }),
    worst: Type.Array(
      Type.Object(
        {
          hosts: Type.Array(Type.String()),
          instances: Type.Integer({ description: 'that ran there' }),
          unplaced: Type.Integer({ description: 'that would find no other place' }),
          examples: Type.Array(Type.Object({ instance: Type.String(), message: Type.String() }, closed)),
        },
        closed,
      ),
      { description: 'at most ten' },
    ),
  },
  closed,
);
export type LossCapacity = Static<typeof LossCapacity>;

export const Capacity = Type.Object(
  {
    hosts: Type.Integer(),
    pools: Type.Array(PoolUse),
    sizes: Type.Array(SizeCapacity),
    losses: Type.Array(LossCapacity, { description: 'for one host, and for two when that was asked' }),
  },
  closed,
);
export type Capacity = Static<typeof Capacity>;
