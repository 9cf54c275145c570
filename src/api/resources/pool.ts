// Pool: a named part of the fleet. A host is in the pool that its spec names.

import { type Static, Type } from 'typebox';
import { AllocationRatios, ScoreWeights } from './host-rules.ts';
import { OnHostLoss, onHostLossHelp } from './host-state.ts';
import { PlainPath } from './mount.ts';
import { Amounts, Name, type Resource, type ResourceDefinition } from './metadata.ts';
import { profileNames } from './profile.ts';

export const PoolSpec = Type.Object(
  {
    description: Type.String({ default: '', maxLength: 1024 }),
    profile: Type.Optional(
      Type.Enum([...profileNames], {
        description:
          'profile of instances of this pool that do not name one; that of the pool `default` also applies to instances without a pool',
      }),
    ),
    weights: Type.Optional(
      Type.Unsafe<ScoreWeights>({ ...ScoreWeights, description: 'replaces single weights of the profile' }),
    ),
    allocationRatios: Type.Optional(
      Type.Unsafe<AllocationRatios>({
        ...AllocationRatios,
        description: 'for its hosts that do not set one; default 4 for VCPU, 1 for others',
      }),
    ),
    hostLimits: Type.Optional(
      Type.Unsafe<Amounts>({
        ...Amounts,
        description: 'what each of its hosts may claim at most; what an agent measures beyond it is not counted',
      }),
    ),
    hostPaths: Type.Optional(
      Type.Array(PlainPath, {
        maxItems: 64,
        description: 'folders of its hosts that containers may mount, with all that is in them; default: none',
      }),
    ),
    onHostLoss: Type.Optional(
      Type.Unsafe<OnHostLoss>({
        ...OnHostLoss,
        description: `for instances of this pool that do not set it, once their host is down: ${onHostLossHelp}`,
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
          description: 'default resources of instances in this pool, if neither they nor their size or image set them',
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
  description: 'A named group of hosts.',
  name: Name,
  spec: PoolSpec,
  status: Type.Object({}, { additionalProperties: false }),
  verbs: ['create', 'replace', 'delete'],
} as const satisfies ResourceDefinition;
