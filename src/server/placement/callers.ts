// Who may do what with the Placement API: who reads hosts reads it, who changes hosts changes it.

import type { Principal } from '../../core/access/principal.ts';
import { rightsOf } from '../../core/access/rights-of.ts';
import type { Snapshot } from '../../core/state/snapshot.ts';
import type { PlacementCaller } from './exchange.ts';

export function callerOf(principal: Principal, snapshot: Snapshot): PlacementCaller {
  const rights = rightsOf(principal, snapshot);
  return { mayRead: rights.everywhere('read', 'host'), mayWrite: rights.everywhere('update', 'host') };
}

/** As the original's `noauth2` does it: `admin` may do everything, `user:project` reads the usage of its project. */
export function noAuthCaller(token: string): PlacementCaller {
  const [user = '', project = ''] = token.split(':');
  const isAdmin = user === 'admin';
  return { mayRead: isAdmin, mayWrite: isAdmin, project: project === '' ? user : project };
}
