// A ticket lets its bearer into one guest once. That it was used is a record, so that it is used once whichever control plane is asked.

import { ApiError } from '../../api/errors.ts';
import type { Context } from '../state/context.ts';
import { keys } from '../state/keys.ts';
import type { Plan } from '../state/plan.ts';
import type { Snapshot } from '../state/snapshot.ts';

export interface AccessTicket {
  /** Never drawn twice. */
  readonly nonce: string;
  readonly instanceId: string;
  /** Of that life only: whoever has the host's ports or the name afterwards is somebody else. */
  readonly incarnation: number;
  /** `console`, `vnc`, `exec` or `ports/<port>`. */
  readonly way: string;
  readonly expiresAtMs: number;
}

/** No project has this name. */
const ticketProject = '@tickets';

/** Throws `Unauthenticated` when it is too late, or it was used before. */
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
