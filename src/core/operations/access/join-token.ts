// Join tokens: with one, a limited number of machines may become hosts of one pool within a limited time.

import { ApiError } from '../../../api/errors.ts';
import type { JoinToken as JoinTokenView } from '../../../api/joining.ts';
import type { Context } from '../../state/context.ts';
import { keys } from '../../state/keys.ts';
import { type Change, type Plan } from '../../state/plan.ts';
import type { JoinToken } from '../../state/records.ts';
import type { Snapshot } from '../../state/snapshot.ts';

/** Expired tokens are shown this long, with the hosts that used them. */
const keptMs = 7 * 86_400_000;

export interface NewToken extends Pick<JoinToken, 'id' | 'hash' | 'labels' | 'usesMax'> {
  readonly pool: string | undefined;
  readonly expiresInMs: number;
}

/** Removes long expired ones, too. Throws `NotFound` when there is no such pool. */
export function createJoinToken(
  snapshot: Snapshot,
  { pool, expiresInMs, ...token }: NewToken,
  ctx: Context,
): { readonly plan: Plan; readonly token: JoinToken } {
  const poolEntry = pool === undefined ? undefined : snapshot.get('pool', keys.pool(pool));
  if (pool !== undefined && poolEntry === undefined)
    throw new ApiError('NotFound', `there is no pool "${pool}"; create it with "berth pool create ${pool}"`, {
      field: 'pool',
    });
  const created: JoinToken = {
    kind: 'joinToken',
    ...token,
    ...(pool === undefined ? {} : { pool }),
    createdAtMs: ctx.nowMs,
    expiresAtMs: ctx.nowMs + expiresInMs,
    used: [],
  };
  const old: Change[] = [...snapshot.list('joinToken')]
    .filter(({ value }) => ctx.nowMs - value.expiresAtMs > keptMs)
    .map(({ key, revision }) => ({ key, ifRevision: revision, value: null }));
  return {
    plan: {
      changes: [{ key: keys.joinToken(token.id), ifRevision: 0, value: created }, ...old],
      ...(poolEntry ? { conditions: [{ key: poolEntry.key, ifRevision: poolEntry.revision }] } : {}),
    },
    token: created,
  };
}

export function deleteJoinToken(snapshot: Snapshot, id: string): { readonly plan: Plan } {
  const entry = snapshot.get('joinToken', keys.joinToken(id));
  if (!entry) throw new ApiError('NotFound', `there is no join token "${id}"; "berth host join-token ls" shows them`);
  return { plan: { changes: [{ key: entry.key, ifRevision: entry.revision, value: null }] } };
}

/** As the API shows it: never its hash. */
export function joinTokenView({ id, pool, labels, createdAtMs, expiresAtMs, usesMax, used }: JoinToken): JoinTokenView {
  const ofPool = pool === undefined ? {} : { pool };
  return { id, ...ofPool, labels: { ...labels }, createdAtMs, expiresAtMs, uses: usesMax, usedBy: [...used] };
}
