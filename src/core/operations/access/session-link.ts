// A link that begins a session of the dashboard. Its use is recorded, so that it is used once even with several control planes.

import { ApiError } from '../../../api/errors.ts';
import type { Context } from '../../state/context.ts';
import { keys } from '../../state/keys.ts';
import type { Plan } from '../../state/plan.ts';
import type { Snapshot } from '../../state/snapshot.ts';

export interface SessionLink {
  /** Unique. */
  readonly nonce: string;
  readonly expiresAtMs: number;
}

/** No project can have this name. */
const linkProject = '@session-links';

/** Throws `Unauthenticated` when the link expired or was used before. */
export function useSessionLink(snapshot: Snapshot, link: SessionLink, ctx: Context): { readonly plan: Plan } {
  if (ctx.nowMs >= link.expiresAtMs)
    throw new ApiError('Unauthenticated', 'this link has expired; get another with "berth dashboard"');
  const key = keys.idempotency(linkProject, link.nonce);
  if (snapshot.get('idempotency', key))
    throw new ApiError('Unauthenticated', 'this link was used; get another with "berth dashboard"');
  const used = {
    kind: 'idempotency',
    ...{ resourceKey: '', resourceId: '', fingerprint: '' },
    createdAtMs: ctx.nowMs,
  } as const;
  return { plan: { changes: [{ key, ifRevision: 0, value: used }] } };
}
