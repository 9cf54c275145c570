// The plan to move an instance to another host: shown before it is applied, and applied by its hash.

import { type Static, Type } from 'typebox';
import { bandwidthBounds, moveKinds, moveWays } from '../resources/migration.ts';
import { PlanReason } from './host-plan.ts';

const closed = { additionalProperties: false } as const;

export const MigrateOptions = Type.Object(
  {
    live: Type.Optional(Type.Boolean({ description: 'move the guest while it runs; default: stop it first' })),
    to: Type.Optional(Type.String({ minLength: 1, maxLength: 63, description: 'default: the best host' })),
    bytesPerSecondMax: Type.Optional(
      Type.Integer({ ...bandwidthBounds, description: 'for copying; default: no limit' }),
    ),
  },
  closed,
);
export type MigrateOptions = Static<typeof MigrateOptions>;

export const MigrationPlan = Type.Object(
  {
    instance: Type.String(),
    instanceId: Type.String(),
    project: Type.String(),
    kind: Type.Enum([...moveKinds], {
      description: 'cold: the guest is stopped while its files are copied; live: the guest keeps running',
    }),
    way: Type.Enum([...moveWays], {
      description: 'direct: from host to host; relayed: through the control plane',
    }),
    from: Type.Optional(Type.String({ description: 'the host where it is' })),
    to: Type.Optional(Type.String({ description: 'absent: no host takes it' })),
    toId: Type.Optional(Type.String()),
    hash: Type.String({ description: 'names this plan when it is applied' }),
    options: MigrateOptions,
    copies: Type.Array(
      Type.Object({ what: Type.String(), gibMax: Type.Integer({ description: 'its files may be as large' }) }, closed),
      { description: 'what is copied: its disk, and its volumes' },
    ),
    obstacles: Type.Array(PlanReason, { description: 'all reasons why it cannot move; empty: it can' }),
  },
  closed,
);
export type MigrationPlan = Static<typeof MigrationPlan>;
