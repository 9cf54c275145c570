// Binding: gives a role to tokens, users or groups, in one project or in the whole fleet.

import { type Static, Type } from 'typebox';
import { Name, type Resource, type ResourceDefinition } from './metadata.ts';

const closed = { additionalProperties: false } as const;

/** Who has the role. Users and groups come from a login (docs/login.md) and are those of one provider. */
export const BindingSubject = Type.Object(
  {
    kind: Type.Enum(['token', 'user', 'group']),
    name: Type.String({
      minLength: 1,
      maxLength: 255,
      pattern: '^[^\\u0000-\\u001f\\u007f\\u200b-\\u200f\\u2028-\\u202e\\u2066-\\u2069]+$',
      description: 'name of a token; or the subject of a user, or the name of a group, as the provider gives it',
    }),
    provider: Type.Optional(
      Type.String({ ...Name, description: 'of a user or group: the name of the login provider in the configuration' }),
    ),
  },
  closed,
);
export type BindingSubject = Static<typeof BindingSubject>;

export const BindingSpec = Type.Object(
  {
    role: Name,
    project: Type.Optional(Type.String({ ...Name, description: 'where the role applies; absent: in the whole fleet' })),
    subjects: Type.Array(BindingSubject, { minItems: 1, maxItems: 256 }),
  },
  closed,
);
export type BindingSpec = Static<typeof BindingSpec>;

export type Binding = Resource<'binding', BindingSpec, Record<string, never>>;

export const bindingDefinition = {
  kind: 'binding',
  plural: 'bindings',
  idPrefix: 'bind',
  scope: 'fleet',
  description: 'Gives a role to tokens, users or groups.',
  name: Name,
  spec: BindingSpec,
  status: Type.Object({}, closed),
  verbs: ['create', 'replace', 'delete'],
} as const satisfies ResourceDefinition;
