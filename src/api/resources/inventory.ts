// Inventory: hosts of another system that owns them, by polling it or by its pushes. They have no agent: tasks hold room on them, and
// instances are never placed there.

import { type Static, Type } from 'typebox';
import { Name, type Resource, type ResourceDefinition } from './metadata.ts';

const closed = { additionalProperties: false } as const;

export const InventorySource = Type.Union(
  [
    Type.Object(
      {
        kind: Type.Literal('http'),
        url: Type.String({
          pattern: '^https?://[^\\s@#]+$',
          maxLength: 2048,
          description: 'answers GET with the list of nodes: http://source.example/nodes',
        }),
      },
      closed,
    ),
    Type.Object({ kind: Type.Literal('push') }, closed),
    Type.Object({ kind: Type.Literal('file') }, closed),
  ],
  {
    description:
      'http: polled; push: sent with PUT /v1/inventories/NAME/nodes; file: a file that the configuration of the server names',
  },
);
export type InventorySource = Static<typeof InventorySource>;

export const InventorySpec = Type.Object(
  {
    description: Type.String({ default: '', maxLength: 1024 }),
    source: InventorySource,
    pool: Type.Optional(Type.String({ ...Name, description: 'of nodes that name none' })),
    intervalMs: Type.Integer({
      default: 10_000,
      minimum: 1_000,
      maximum: 3_600_000,
      description: 'between two polls; holds older than two intervals count as part of the reported usage',
    }),
    lossShareMax: Type.Number({
      default: 0.2,
      minimum: 0,
      maximum: 1,
      description: 'a list that lacks more than this share of the hosts, and at least three, must be confirmed',
    }),
  },
  closed,
);
export type InventorySpec = Static<typeof InventorySpec>;

export const InventoryStatus = Type.Object(
  {
    state: Type.Enum(['Waiting', 'Fresh', 'Stale', 'Held'], {
      description:
        'Waiting: no list yet; Stale: the source fails, and its last good list stays; Held: a list waits for confirmation, and the last good one stays',
    }),
    message: Type.String({ maxLength: 2048 }),
    lastGoodAtMs: Type.Optional(
      Type.Integer({ description: 'when Fresh: of the last list that changed something; else of the last good list' }),
    ),
    hash: Type.Optional(
      Type.String({ maxLength: 64, description: 'of the nodes of the last list, without their usage' }),
    ),
    hosts: Type.Integer({ minimum: 0 }),
    skipped: Type.Array(Type.String({ maxLength: 256 }), { maxItems: 16, description: 'nodes left out, and why' }),
    waiting: Type.Optional(
      Type.Object(
        { hash: Type.String({ maxLength: 64 }), gone: Type.Integer({ minimum: 0 }) },
        { ...closed, description: 'the loss that waits for confirmation' },
      ),
    ),
    confirmed: Type.Optional(Type.String({ maxLength: 64, description: 'the loss that somebody confirmed' })),
  },
  closed,
);
export type InventoryStatus = Static<typeof InventoryStatus>;

export type Inventory = Resource<'inventory', InventorySpec, InventoryStatus>;

export const inventoryDefinition = {
  kind: 'inventory',
  plural: 'inventories',
  idPrefix: 'inv',
  scope: 'fleet',
  description: 'Hosts of another system, which have no agent.',
  name: Name,
  spec: InventorySpec,
  status: InventoryStatus,
  verbs: ['create', 'replace', 'delete'],
} as const satisfies ResourceDefinition;
