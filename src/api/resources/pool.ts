// Pool: a named part of the fleet. A host is in the pool that its spec names.

import { type Static, Type } from 'typebox';
import { Name, type Resource, type ResourceDefinition } from './metadata.ts';

export const PoolSpec = Type.Object(
  {
    description: Type.String({ default: '', maxLength: 1024 }),
    profile: Type.Optional(
      Type.Enum(['optimize-utilization', 'distribute-load'], {
        description:
          'for instances of this pool that name none; that of the pool `default` is for those that name no pool',
      }),
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
