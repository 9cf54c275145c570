// Size: a named amount of resources, so that users can request "small".

import { type Static, Type } from 'typebox';
import { DottedName, type Resource, type ResourceDefinition } from './metadata.ts';

export const SizeSpec = Type.Object(
  {
    cpus: Type.Integer({ minimum: 1, maximum: 1024 }),
    memoryMiB: Type.Integer({ minimum: 16, maximum: 67_108_864 }),
    diskGiB: Type.Optional(Type.Integer({ minimum: 0, maximum: 1_048_576 })),
  },
  { additionalProperties: false },
);
export type SizeSpec = Static<typeof SizeSpec>;

export type Size = Resource<'size', SizeSpec, Record<string, never>>;

export const sizeDefinition = {
  kind: 'size',
  plural: 'sizes',
  idPrefix: 'size',
  scope: 'fleet',
  description: 'A named amount of resources.',
  name: DottedName,
  spec: SizeSpec,
  status: Type.Object({}, { additionalProperties: false }),
  verbs: ['create', 'replace', 'delete'],
} as const satisfies ResourceDefinition;
