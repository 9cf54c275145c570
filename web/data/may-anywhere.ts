// What the roles of a user may permit somewhere. Pure.

import { type AccessResource, builtInRoles, isBuiltInRole, type RoleRules, type Verb } from '../../src/api/access.ts';
import type { WhoAmI } from '../../src/api/routes/access.ts';

/** Whether some role of the user may permit it somewhere: for what is shown in the navigation. A custom role may permit anything. */
export function mayAnywhere(who: WhoAmI, resource: AccessResource, ...wanted: readonly Verb[]): boolean {
  if (who.kind === 'admin') return true;
  return who.roles.some(({ role }) => {
    if (!isBuiltInRole(role)) return true;
    const { rules }: { readonly rules: RoleRules } = builtInRoles[role];
    const permitted = rules[resource] ?? [];
    return wanted.some((verb) => permitted.includes(verb));
  });
}
