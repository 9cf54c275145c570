// A ticket grants its bearer access to one guest once. Its use is recorded, so that it is used once even with several
// control planes.

import type { Principal } from '../access/principal.ts';
import type { Context } from '../state/context.ts';
import { useOnce } from './access/use-once.ts';
import type { Plan } from '../state/plan.ts';
import type { Snapshot } from '../state/snapshot.ts';

export interface AccessTicket {
  /** Unique. */
  readonly nonce: string;
  readonly instanceId: string;
  /** Valid for this incarnation only: the host's ports and the name may belong to another instance later. */
  readonly incarnation: number;
  /** `console`, `vnc`, `exec` or `ports/<port>`. */
  readonly way: string;
  readonly expiresAtMs: number;
  /** Who got it: its use needs the rights that they have then. */
  readonly by: Principal;
}

/** Throws `Unauthenticated` when the ticket expired or was used before. */
export function useTicket(snapshot: Snapshot, ticket: AccessTicket, ctx: Context): { readonly plan: Plan } {
  const { nonce, expiresAtMs, instanceId: id, way } = ticket;
  return useOnce(snapshot, { kind: 'ticket', nonce, expiresAtMs, about: { id, way }, advice: 'ask for another' }, ctx);
}
