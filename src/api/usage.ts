// Usage: the capacity of hosts and how much of it is held, from the ledger; and the total requests of projects.

import { type Static, Type } from 'typebox';

const closed = { additionalProperties: false } as const;

export const ClassUsage = Type.Object(
  {
    capacity: Type.Integer({ description: 'what can be allocated in total: (total − reserved) × ratio' }),
    used: Type.Integer(),
    most: Type.Integer({ description: 'the most that one claim can get now' }),
  },
  closed,
);

export const HostUsage = Type.Object(
  {
    host: Type.String(),
    consumers: Type.Integer({ description: 'instances and tasks with allocations there' }),
    classes: Type.Record(Type.String(), ClassUsage),
  },
  closed,
);
export type HostUsage = Static<typeof HostUsage>;

export const UsagePage = Type.Object(
  { items: Type.Array(HostUsage), continue: Type.Optional(Type.String({ description: 'for the next page' })) },
  closed,
);
export type UsagePage = Static<typeof UsagePage>;

export const ProjectUsage = Type.Object(
  {
    project: Type.String(),
    charged: Type.Record(Type.String(), Type.Integer(), {
      description:
        'amounts that count towards its quota, by resource class, for instances placed or not; INSTANCES is their number',
    }),
  },
  closed,
);
export type ProjectUsage = Static<typeof ProjectUsage>;

export const ProjectTotal = Type.Object(
  {
    project: Type.String(),
    instances: Type.Integer(),
    running: Type.Integer(),
    pending: Type.Integer(),
    cpus: Type.Number({ description: 'CPUs that its instances claim; may be a fraction' }),
    memoryMiB: Type.Number(),
    diskGiB: Type.Number(),
  },
  closed,
);
export type ProjectTotal = Static<typeof ProjectTotal>;

export const ProviderUsage = Type.Object(
  {
    id: Type.String(),
    parent: Type.Optional(Type.String()),
    generation: Type.Integer(),
    traits: Type.Array(Type.String()),
    aggregates: Type.Array(Type.String()),
    inventories: Type.Record(
      Type.String(),
      Type.Object(
        {
          total: Type.Integer(),
          reserved: Type.Integer(),
          minUnit: Type.Integer(),
          maxUnit: Type.Integer(),
          stepSize: Type.Integer(),
          allocationRatio: Type.Number(),
          capacity: Type.Integer(),
          used: Type.Integer(),
        },
        closed,
      ),
    ),
  },
  closed,
);
export type ProviderUsage = Static<typeof ProviderUsage>;

export const HostProviders = Type.Object(
  {
    providers: Type.Array(ProviderUsage),
    allocations: Type.Array(
      Type.Object(
        {
          kind: Type.Enum(['instance', 'task', 'volume', 'outside']),
          project: Type.String(),
          name: Type.String(),
          incarnation: Type.Integer(),
          amounts: Type.Record(Type.String(), Type.Record(Type.String(), Type.Integer()), {
            description: 'by provider id, then resource class',
          }),
        },
        closed,
      ),
    ),
  },
  closed,
);
export type HostProviders = Static<typeof HostProviders>;

/** One provider of the ledger, as the Placement API shows it: of a host, a part of it, or an outside one. */
export const LedgerProvider = Type.Object(
  {
    uuid: Type.String(),
    name: Type.String(),
    generation: Type.Integer(),
    parent: Type.Optional(Type.String({ description: 'UUID of the parent' })),
    inventories: Type.Record(
      Type.String(),
      Type.Object(
        {
          total: Type.Integer(),
          reserved: Type.Integer(),
          allocationRatio: Type.Number(),
          used: Type.Number(),
        },
        closed,
      ),
    ),
    allocations: Type.Array(
      Type.Object(
        {
          consumer: Type.String({ description: 'UUID of the consumer' }),
          type: Type.Optional(Type.String({ description: 'absent: unknown' })),
          project: Type.String(),
          amounts: Type.Record(Type.String(), Type.Number(), { description: 'by resource class' }),
        },
        closed,
      ),
    ),
  },
  closed,
);
export type LedgerProvider = Static<typeof LedgerProvider>;
