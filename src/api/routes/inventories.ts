// What can be asked of an inventory, besides what every resource has.

import { Type } from 'typebox';
import { InventoryStatus } from '../resources/inventory.ts';
import { json, needs, route } from './route.ts';

const closed = { additionalProperties: false } as const;
const tag = 'inventories';

/** One node; read one by one, so that a bad one does not refuse the list. */
export const OutsideNode = Type.Object(
  {
    name: Type.String({ description: 'a name of a host' }),
    cpu: Type.Integer({ minimum: 1 }),
    memory: Type.Integer({ minimum: 1, description: 'MiB' }),
    storage: Type.Optional(Type.Integer({ minimum: 0, description: 'GiB' })),
    usage_cpu: Type.Optional(Type.Number({ minimum: 0, description: 'CPUs, at most all; default: 0' })),
    usage_mem: Type.Optional(Type.Number({ minimum: 0, description: 'MiB, at most all; default: 0' })),
    pool: Type.Optional(Type.String()),
    dedicated: Type.Optional(Type.Boolean()),
    model: Type.Optional(Type.String()),
    max_vms: Type.Optional(Type.Integer({ minimum: 0 })),
    current_vms: Type.Optional(Type.Integer({ minimum: 0 })),
    ip: Type.Optional(Type.String()),
  },
  { description: 'other fields are ignored; null is as good as absent' },
);

export const inventoryRoutes = {
  push: route({
    id: 'pushInventoryNodes',
    tag,
    method: 'PUT',
    path: '/v1/inventories/:name/nodes',
    access: needs('inventory', 'update'),
    summary: 'Send the whole list of nodes of an inventory',
    body: Type.Array(OutsideNode, { maxItems: 100_000 }),
    bodyCheckedByHandler: true,
    bodyBytesMax: 10 * 1024 * 1024,
    answers: { 200: json(InventoryStatus, 'the state that it led to') },
    errors: ['NotFound', 'Conflict'],
  }),
  confirm: route({
    id: 'confirmInventory',
    tag,
    method: 'POST',
    path: '/v1/inventories/:name/confirm',
    access: needs('inventory', 'update'),
    summary: 'Let the hosts go that the last list lacks',
    body: Type.Object(
      { hash: Type.String({ minLength: 1, maxLength: 64, description: 'as "waiting" has it' }) },
      closed,
    ),
    answers: { 200: json(InventoryStatus) },
    errors: ['NotFound', 'Conflict'],
  }),
} as const;
