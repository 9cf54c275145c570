// Pool: a named part of the fleet. A host is in the pool that its spec names. `status` is written by core/controllers/hosts/rebalance.ts.

import { type Static, Type } from 'typebox';
import { AllocationRatios, ScoreWeights } from './host-rules.ts';
import { OnHostLoss, onHostLossHelp } from './host-state.ts';
import { PlainPath } from './mount.ts';
import { Amounts, Name, type Resource, type ResourceDefinition } from './metadata.ts';
import { PoolRebalance, PoolRebalanceStatus } from './pool-rebalance.ts';
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
    rebalance: Type.Optional(
      Type.Unsafe<PoolRebalance>({
        ...PoolRebalance,
        description: 'when plans are made to use fewer of its hosts; default: on request only',
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

export const PoolStatus = Type.Object(
  { rebalance: Type.Optional(PoolRebalanceStatus) },
  { additionalProperties: false },
);
export type PoolStatus = Static<typeof PoolStatus>;

export type Pool = Resource<'pool', PoolSpec, PoolStatus>;

export const poolDefinition = {
  kind: 'pool',
  plural: 'pools',
  idPrefix: 'pool',
  scope: 'fleet',
  description: 'A named group of hosts.',
  name: Name,
  spec: PoolSpec,
  status: PoolStatus,
  verbs: ['create', 'replace', 'delete'],
} as const satisfies ResourceDefinition;
