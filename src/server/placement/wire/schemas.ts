// The bodies and queries of the Placement API by version: each shape once, and from which version it counts.

import type { Schema } from './json-schema.ts';
import type { ByVersion } from '../versions.ts';

const uuidKey = '^[0-9a-fA-F-]{36}$';
const className = '^[A-Z0-9_]+$';
const customName = '^CUSTOM_[A-Z0-9_]+$';
const integerMax = 2_147_483_647;
const ratioMax = 3.402_82e38;

const uuid: Schema = { type: 'string', format: 'uuid' };
const text: Schema = { type: 'string' };
const shortText: Schema = { type: 'string', minLength: 1, maxLength: 255 };
const integer: Schema = { type: 'integer' };
const upTo = (minimum: number): Schema => ({ type: 'integer', minimum, maximum: integerMax });

/** No member but these. */
function closed(properties: Readonly<Record<string, Schema>>, required: readonly string[] = []): Schema {
  return { type: 'object', properties, required, additionalProperties: false };
}

// Providers.

const providerName: Schema = { type: 'string', maxLength: 200 };
const parent: Schema = { anyOf: [uuid, { type: 'null' }] };

export const newProvider: ByVersion<Schema> = [
  [0, closed({ name: providerName, uuid }, ['name'])],
  [14, closed({ name: providerName, uuid, parent_provider_uuid: parent }, ['name'])],
];
export const providerUpdate: ByVersion<Schema> = [
  [0, closed({ name: providerName }, ['name'])],
  [14, closed({ name: providerName, parent_provider_uuid: parent }, ['name'])],
];
const listProperties = { name: text, uuid };
export const providerQuery: ByVersion<Schema> = [
  [0, closed(listProperties)],
  [3, closed({ ...listProperties, member_of: text })],
  [4, closed({ ...listProperties, member_of: text, resources: text })],
  [14, closed({ ...listProperties, member_of: text, resources: text, in_tree: uuid })],
  [18, closed({ ...listProperties, member_of: text, resources: text, in_tree: uuid, required: text })],
];

// Inventories.

const inventoryProperties = {
  resource_provider_generation: integer,
  total: upTo(1),
  reserved: upTo(0),
  min_unit: upTo(1),
  max_unit: upTo(1),
  step_size: upTo(1),
  allocation_ratio: { type: 'number', maximum: ratioMax } as const,
};
export const oneInventory = closed(inventoryProperties, ['total', 'resource_provider_generation']);
export const newInventory = closed({ ...inventoryProperties, resource_class: { type: 'string', pattern: className } }, [
  'total',
  'resource_class',
]);
export const allInventories = closed(
  {
    resource_provider_generation: integer,
    inventories: { type: 'object', patternProperties: { [className]: closed(inventoryProperties, ['total']) } },
  },
  ['resource_provider_generation', 'inventories'],
);

// Classes, traits and aggregates.

export const classBody = closed({ name: { type: 'string', pattern: customName, maxLength: 255 } }, ['name']);
export const customTrait: Schema = { ...shortText, pattern: customName };
export const traitsBody = closed(
  { traits: { type: 'array', items: shortText }, resource_provider_generation: integer },
  ['traits', 'resource_provider_generation'],
);
export const traitQuery = closed({ name: text, associated: text });
const aggregateList: Schema = { type: 'array', items: uuid, uniqueItems: true };
export const aggregatesBody: ByVersion<Schema> = [
  [0, aggregateList],
  [
    19,
    closed({ aggregates: aggregateList, resource_provider_generation: integer }, [
      'aggregates',
      'resource_provider_generation',
    ]),
  ],
];

// Usages.

const usageProperties = { project_id: shortText, user_id: shortText };
export const usageQuery: ByVersion<Schema> = [
  [9, closed(usageProperties, ['project_id'])],
  [
    38,
    closed({ ...usageProperties, consumer_type: { ...shortText, pattern: `${className}|^all|^unknown$` } }, [
      'project_id',
    ]),
  ],
];

// Allocations.

const amounts: Schema = {
  type: 'object',
  minProperties: 1,
  patternProperties: { [className]: { type: 'integer', minimum: 1 } },
  additionalProperties: false,
};
const listedAllocations: Schema = {
  type: 'array',
  minItems: 1,
  items: closed({ resource_provider: closed({ uuid }, ['uuid']), resources: amounts }, [
    'resource_provider',
    'resources',
  ]),
};
const owner = { project_id: shortText, user_id: shortText };
const allocationsOf = (minProperties: number): Schema => ({
  type: 'object',
  minProperties,
  patternProperties: { [uuidKey]: closed({ generation: integer, resources: amounts }, ['resources']) },
  additionalProperties: false,
});
const always = ['allocations', 'project_id', 'user_id'];
const emptied = { allocations: allocationsOf(0), ...owner };
const counted = { ...emptied, consumer_generation: { type: ['integer', 'null'] } as const };
const mapped = {
  ...counted,
  mappings: {
    type: 'object',
    minProperties: 1,
    patternProperties: { '^[a-zA-Z0-9_-]{1,64}$|^$': { type: 'array', minItems: 1, items: uuid } },
  } as const,
};
const typed = { ...mapped, consumer_type: { ...shortText, pattern: className } };
const deletable = closed(emptied, always);
const from28 = closed(counted, [...always, 'consumer_generation']);
const from34 = closed(mapped, [...always, 'consumer_generation']);
const from38 = closed(typed, [...always, 'consumer_generation', 'consumer_type']);

export const consumerAllocations: ByVersion<Schema> = [
  [0, closed({ allocations: listedAllocations }, ['allocations'])],
  [8, closed({ allocations: listedAllocations, ...owner }, always)],
  [12, closed({ allocations: allocationsOf(1), ...owner }, always)],
  [28, from28],
  [34, from34],
  [38, from38],
];

const byConsumer = (each: Schema, minProperties: number): Schema => ({
  type: 'object',
  minProperties,
  additionalProperties: false,
  patternProperties: { [uuidKey]: each },
});
export const manyAllocations: ByVersion<Schema> = [
  [13, byConsumer(deletable, 1)],
  [28, byConsumer(from28, 1)],
  [34, byConsumer(from34, 1)],
  [38, byConsumer(from38, 1)],
];

const reshaped = (each: Schema): Schema =>
  closed(
    {
      inventories: {
        type: 'object',
        patternProperties: { [uuidKey]: allInventories },
        minProperties: 1,
        additionalProperties: false,
      },
      allocations: byConsumer(each, 0),
    },
    ['inventories', 'allocations'],
  );
export const reshaperBody: ByVersion<Schema> = [
  [30, reshaped(from28)],
  [34, reshaped(from34)],
  [38, reshaped(from38)],
];
