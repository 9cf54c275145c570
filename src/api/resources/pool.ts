// Pool: a named part of the fleet. A host is in the pool that its spec names.

import { type Static, Type } from 'typebox';
import { AllocationRatios, ScoreWeights } from './host-rules.ts';
import { Name, type Resource, type ResourceDefinition } from './metadata.ts';
import { profileNames } from './profile.ts';

export const PoolSpec = Type.Object(
  {
    description: Type.String({ default: '', maxLength: 1024 }),
    profile: Type.Optional(
      Type.Enum([...profileNames], {
        description:
          'for instances of this pool that name none; that of the pool `default` is for those that name no pool',
      }),
    ),
    weights: Type.Optional(
      Type.Unsafe<ScoreWeights>({ ...ScoreWeights, description: 'instead of those of the profile, one by one' }),
    ),
    allocationRatios: Type.Optional(
      Type.Unsafe<AllocationRatios>({
        ...AllocationRatios,
        description: 'of its hosts, where they have none of their own; default 4 for VCPU, 1 for others',
      }),
    ),
    defaults: Type.Optional(
      Type.Object(
        {
          cpus: Type.Optional(Type.Integer({ minimum: 1, maximum: 1024 })),
          memoryMiB: Type.Optional(Type.Integer({ minimum: 16, maximum: 67_108_864 })),
        },
        {
          additionalProperties: false,
          description: 'what instances of this pool get that say nothing, and whose size and image say nothing',
        },
      ),
    ),
  },
  { additionalProperties: false },
);
export type PoolSpec = Static<typeof PoolSpec>;

export type Pool = Resource<'pool', PoolSpec, Record<string, never>>;

export const poolDefinition = {
  kind: 'pool',
  plural: 'pools',
  idPrefix: 'pool',
  scope: 'fleet',
  description: 'A named part of the fleet.',
  name: Name,
  spec: PoolSpec,
  status: Type.Object({}, { additionalProperties: false }),
  verbs: ['create', 'replace', 'delete'],
} as const satisfies ResourceDefinition;
