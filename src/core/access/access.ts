// Access: who may do what. An agent reaches its own host and nothing else; operators reach everything.

import type { RouteVerb } from '../../api/routes/route.ts';

export type Identity =
  | { readonly role: 'operator'; readonly name: string }
  | { readonly role: 'host'; readonly host: string };

/** What a route asks for that is not open to all. */
type Verb = Exclude<RouteVerb, 'open'>;

/** `host` names the host that an agent's route is about. */
export function may(identity: Identity, verb: Verb, host?: string): boolean {
  switch (identity.role) {
    case 'operator':
      return true;
    case 'host':
      return verb === 'agent' && identity.host === host;
  }
}
