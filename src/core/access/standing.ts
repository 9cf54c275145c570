// Whether a token opens anything now: it, and every token that it depends on, must exist and must not have expired.

import type { Token, TokenSpec } from '../../api/resources/token.ts';
import { keys } from '../state/keys.ts';
import type { Entry } from '../state/snapshot.ts';
import { ownersMax } from './rights-of.ts';

export type Standing = 'valid' | 'expired' | 'revoked';

export type FindToken = (key: string) => Entry<Token> | undefined;

/** `revoked`: a token that it depends on is gone. `find` is asked for those only. */
export function standingOf(token: Token, nowMs: number, find: FindToken): Standing {
  for (let at = token, depth = 0; ; depth++) {
    const { owner, expiresAtMs } = at.spec;
    if (expiresAtMs !== undefined && expiresAtMs <= nowMs) return 'expired';
    if (owner === undefined) return 'valid';
    const next = find(keys.token(owner.name))?.value;
    if (next?.metadata.id !== owner.id || depth >= ownersMax) return 'revoked';
    at = next;
  }
}

/** How many tokens it depends on. */
export function ownersOf(token: Token, find: FindToken): number {
  let count = 0;
  for (let at: Token | undefined = token; at?.spec.owner !== undefined && count <= ownersMax; count++)
    at = find(keys.token(at.spec.owner.name))?.value;
  return count;
}

/** Whether somebody got it by logging in. */
export function isLogin({ user, owner, role, share }: TokenSpec): boolean {
  return user !== undefined && owner === undefined && role === undefined && share === undefined;
}
