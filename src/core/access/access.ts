// Access: who may do what. An agent may access its own host only; operators may access everything.

import type { RouteVerb } from '../../api/routes/route.ts';

export type Identity =
  | { readonly role: 'operator'; readonly name: string }
  | { readonly role: 'host'; readonly host: string };

/** Routes for which access is checked: all but the open ones. */
type Verb = Exclude<RouteVerb, 'open'>;

/** `host` is the host of an agent's route. */
export function may(identity: Identity, verb: Verb, host?: string): boolean {
  switch (identity.role) {
    case 'operator':
      return true;
    case 'host':
      return verb === 'agent' && identity.host === host;
  }
}
