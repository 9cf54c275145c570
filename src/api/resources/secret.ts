// Secret: named values that instances and jobs of a project use without showing them. The values are written through the
// API and never returned: the resource has their names only.

import { type Static, Type } from 'typebox';
import { Name, type Resource, type ResourceDefinition } from './metadata.ts';

const closed = { additionalProperties: false } as const;

/** Of one value; a variable or the name of a file. */
const SecretKeyName = Type.String({
  pattern: '^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$',
  description: 'letters, digits, "_", "." and "-"',
});
const Value = Type.String({ pattern: '^[^\\u0000]*$', maxLength: 32_768 });

export const secretValuesMax = 64;

export const SecretSpec = Type.Object(
  {
    description: Type.String({ default: '', maxLength: 1024 }),
    values: Type.Optional(
      Type.Record(SecretKeyName, Type.Union([Value, Type.Null()]), {
        maxProperties: secretValuesMax,
        additionalProperties: false,
        description:
          'written, never returned; null removes a value, and a replace keeps the values that it does not name',
      }),
    ),
  },
  closed,
);
export type SecretSpec = Static<typeof SecretSpec>;

export const SecretStatus = Type.Object(
  {
    version: Type.Integer({ description: 'grows with each change of a value' }),
    keys: Type.Record(Type.String(), Type.Object({ updatedAtMs: Type.Integer() }, closed), {
      description: 'the names of the values, and when each was last set',
    }),
  },
  closed,
);
export type SecretStatus = Static<typeof SecretStatus>;

export type Secret = Resource<'secret', SecretSpec, SecretStatus>;

/** A value of a secret of the same project, in place of a text. */
export const SecretReference = Type.Object({ secret: Name, key: SecretKeyName }, closed);
export type SecretReference = Static<typeof SecretReference>;

export const secretDefinition = {
  kind: 'secret',
  plural: 'secrets',
  idPrefix: 'secret',
  scope: 'project',
  description: 'Named values for instances and jobs, encrypted in the store and never returned.',
  name: Name,
  spec: SecretSpec,
  status: SecretStatus,
  verbs: ['create', 'replace', 'delete'],
} as const satisfies ResourceDefinition;
