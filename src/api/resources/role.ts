// Role: a named set of permissions. The built-in ones (api/access.ts) need no record.

import { type Static, Type } from 'typebox';
import { RoleRulesSchema } from '../access.ts';
import { Name, type Resource, type ResourceDefinition } from './metadata.ts';

export const RoleSpec = Type.Object(
  { description: Type.String({ default: '', maxLength: 1024 }), rules: RoleRulesSchema },
  { additionalProperties: false },
);
export type RoleSpec = Static<typeof RoleSpec>;

export type Role = Resource<'role', RoleSpec, Record<string, never>>;

export const roleDefinition = {
  kind: 'role',
  plural: 'roles',
  idPrefix: 'role',
  scope: 'fleet',
  description: 'A custom role: by resource, what it permits.',
  name: Name,
  spec: RoleSpec,
  status: Type.Object({}, { additionalProperties: false }),
  verbs: ['create', 'replace', 'delete'],
} as const satisfies ResourceDefinition;
