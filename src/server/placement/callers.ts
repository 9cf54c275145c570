// Who may do what with the Placement API: who reads hosts reads it, who changes hosts changes it.

import type { Principal } from '../../core/access/principal.ts';
import { rightsOf } from '../../core/access/rights-of.ts';
import type { Snapshot } from '../../core/state/snapshot.ts';
import type { PlacementCaller } from './exchange.ts';

export function callerOf(principal: Principal, snapshot: Snapshot): PlacementCaller {
  const rights = rightsOf(principal, snapshot);
  return { mayRead: rights.everywhere('read', 'host'), mayWrite: rights.everywhere('update', 'host') };
}

/** `X-Auth-Token`, `X-Roles` and `X-Project-Id` of a request, all of which are believed. */
export interface NamedCaller {
  readonly token: string;
  readonly roles: string | undefined;
  readonly project: string | undefined;
}

/**
 * As the original's `noauth2` does it: the user or role `admin` may do everything, and `user:project` reads the usage of its project, unless the
 * request names roles without `reader` and `member`.
 */
export function noAuthCaller({ token, roles, project }: NamedCaller): PlacementCaller {
  const [user = '', named = ''] = token.split(':');
  const all = roles?.split(',').map((role) => role.trim()) ?? (user === 'admin' ? ['admin'] : ['reader']);
  const isAdmin = all.includes('admin') || all.includes('service');
  const readsUsage = isAdmin || all.includes('reader') || all.includes('member');
  return { mayRead: isAdmin, mayWrite: isAdmin, ...(readsUsage ? { project: project ?? (named || user) } : {}) };
}
