// A principal gives only what it has: a role is given, in a token, by a binding or by an edit of the role, only by a principal whose own
// rights permit everything in it, at the same place.

import { builtInRoles } from '../../api/access.ts';
import { ApiError } from '../../api/errors.ts';
import type { AnyResource } from '../../api/resources/index.ts';
import type { Snapshot } from '../state/snapshot.ts';
import { describePrincipal, type Principal } from './principal.ts';
import type { Grant } from './rights.ts';
import { rightsOf, rulesOfRole } from './rights-of.ts';

/** Throws `Forbidden`, with what the principal lacks. */
export function assertWithinOwn(snapshot: Snapshot, principal: Principal, grant: Grant, field: string): void {
  const missing = rightsOf(principal, snapshot).missingFor(grant);
  if (missing === undefined) return;
  const { verb, resource } = missing;
  const where = grant.project === undefined ? 'in the whole fleet' : `in project "${grant.project}"`;
  const message = `this would permit "${verb}" on ${resource} ${where}, which ${describePrincipal(principal)} does not permit itself`;
  throw new ApiError('Forbidden', message, { field });
}

/** Whether the principal is as good as the first administrator. */
export function isFleetAdmin(snapshot: Snapshot, principal: Principal): boolean {
  const grant = { rules: builtInRoles.admin.rules, project: undefined };
  return rightsOf(principal, snapshot).missingFor(grant) === undefined;
}

/** For a created or replaced role or binding; nothing for other kinds. */
export function assertGivesWithinOwn(snapshot: Snapshot, principal: Principal, after: AnyResource): void {
  if (after.kind === 'binding') {
    const { role, project } = after.spec;
    assertWithinOwn(snapshot, principal, { rules: rulesOfRole(snapshot, role) ?? {}, project }, 'spec.role');
  }
  // A role can be given anywhere later: its editor has all of it everywhere.
  if (after.kind === 'role')
    assertWithinOwn(snapshot, principal, { rules: after.spec.rules, project: undefined }, 'spec.rules');
}
