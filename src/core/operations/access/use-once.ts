// What may be used once: tickets and links. Its use is recorded, so that it is used once even with several control planes.

import { ApiError } from '../../../api/errors.ts';
import type { Context } from '../../state/context.ts';
import { keys } from '../../state/keys.ts';
import type { Plan } from '../../state/plan.ts';
import type { Snapshot } from '../../state/snapshot.ts';

export interface UsedOnce {
  /** `ticket`; no project can have the name that records are kept under. */
  readonly kind: 'ticket' | 'link';
  /** Unique. */
  readonly nonce: string;
  readonly expiresAtMs: number;
  /** Kept in the record, for people. */
  readonly about?: { readonly id: string; readonly way: string };
  /** How to get another: `ask for another`. */
  readonly advice: string;
}

/** Throws `Unauthenticated` when it expired or was used before. */
export function useOnce(snapshot: Snapshot, used: UsedOnce, ctx: Context): { readonly plan: Plan } {
  const { kind, nonce, expiresAtMs, about, advice } = used;
  if (ctx.nowMs >= expiresAtMs) throw new ApiError('Unauthenticated', `this ${kind} has expired; ${advice}`);
  const key = keys.idempotency(`@${kind}s`, nonce);
  if (snapshot.get('idempotency', key)) throw new ApiError('Unauthenticated', `this ${kind} was used; ${advice}`);
  const value = {
    kind: 'idempotency',
    resourceKey: '',
    resourceId: about?.id ?? '',
    fingerprint: about?.way ?? '',
    createdAtMs: ctx.nowMs,
  } as const;
  return { plan: { changes: [{ key, ifRevision: 0, value }] } };
}
