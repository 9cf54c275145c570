// A ticket grants its bearer access to one guest once. Its use is recorded, so that it is used once even with several
// control planes.

import { ApiError } from '../../api/errors.ts';
import type { Principal } from '../access/principal.ts';
import type { Context } from '../state/context.ts';
import { keys } from '../state/keys.ts';
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

/** No project can have this name. */
const ticketProject = '@tickets';

/** Throws `Unauthenticated` when the ticket expired or was used before. */
export function useTicket(snapshot: Snapshot, ticket: AccessTicket, ctx: Context): { readonly plan: Plan } {
  if (ctx.nowMs >= ticket.expiresAtMs)
    throw new ApiError('Unauthenticated', 'this ticket has expired; ask for another');
  const key = keys.idempotency(ticketProject, ticket.nonce);
  if (snapshot.get('idempotency', key)) throw new ApiError('Unauthenticated', 'this ticket was used; ask for another');
  const { instanceId, way } = ticket;
  const used = {
    kind: 'idempotency',
    resourceKey: '',
    resourceId: instanceId,
    fingerprint: way,
    createdAtMs: ctx.nowMs,
  } as const;
  return { plan: { changes: [{ key, ifRevision: 0, value: used }] } };
}
