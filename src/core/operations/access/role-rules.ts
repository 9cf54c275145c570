// What must hold for every role and binding, whichever principal writes it.

import { isBuiltInRole } from '../../../api/access.ts';
import { ApiError } from '../../../api/errors.ts';
import type { BindingSpec } from '../../../api/resources/binding.ts';
import { rulesOfRole } from '../../access/rights-of.ts';
import { keys } from '../../state/keys.ts';
import type { Snapshot } from '../../state/snapshot.ts';
import { unknownRole } from './token.ts';

/** Throws `InvalidRequest`, naming the field. */
export function assertBinding(snapshot: Snapshot, { role, subjects }: BindingSpec): void {
  if (rulesOfRole(snapshot, role) === undefined) throw unknownRole(role, 'spec.role');
  for (const [i, { kind, name, provider }] of subjects.entries()) {
    const field = `spec.subjects[${i}]`;
    if (kind === 'token' && provider !== undefined)
      throw new ApiError('InvalidRequest', 'a token has no provider', { field: `${field}.provider` });
    if (kind !== 'token' && provider === undefined)
      throw new ApiError('InvalidRequest', `a ${kind} needs the name of its login provider`, {
        field: `${field}.provider`,
      });
    if (kind === 'token' && snapshot.get('token', keys.token(name))?.value.spec.share)
      throw new ApiError('InvalidRequest', `token "${name}" is a share, which opens its instance only`, { field });
  }
}

/** A custom role cannot take the place of a built-in one. Throws `AlreadyExists`. */
export function assertRoleName(name: string): void {
  if (!isBuiltInRole(name)) return;
  throw new ApiError('AlreadyExists', `"${name}" is a built-in role; choose another name`, { field: 'metadata.name' });
}

const namedMax = 3;

/** Throws `Conflict` while a binding or a token gives the role: they would lose it, and have it again with another role of its name. */
export function assertRoleUnused(snapshot: Snapshot, role: string): void {
  const users: string[] = [];
  for (const kind of ['binding', 'token'] as const)
    for (const { value } of snapshot.list(kind))
      if (value.spec.role === role) users.push(`${kind} "${value.metadata.name}"`);
  if (users.length === 0) return;
  const more = users.length > namedMax ? ` and ${users.length - namedMax} more` : '';
  const named = users.slice(0, namedMax).join(', ');
  throw new ApiError('Conflict', `role "${role}" is in use: ${named}${more} would lose it; remove them first`);
}
