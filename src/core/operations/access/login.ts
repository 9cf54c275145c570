// What becomes of a login: a token, once for each ID token. A person's has what bindings give to the user and the groups; a
// workload's has the role of the rule that admitted it.

import { ApiError } from '../../../api/errors.ts';
import type { BindingSubject } from '../../../api/resources/binding.ts';
import type { TokenSpec, TokenUser } from '../../../api/resources/token.ts';
import { rulesOfRole } from '../../access/rights-of.ts';
import type { Context } from '../../state/context.ts';
import { keys } from '../../state/keys.ts';
import type { Snapshot } from '../../state/snapshot.ts';
import type { Decision } from '../decision.ts';
import { issueToken, type TokenProof } from './token.ts';

/** A login whose ID token was verified. */
export interface VerifiedLogin {
  /** Who it is: issuer and subject together. The name is only shown. */
  readonly user: { readonly issuer: string; readonly subject: string; readonly name: string };
  readonly grant:
    | { readonly kind: 'user'; readonly provider: string; readonly groups: readonly string[] }
    | { readonly kind: 'workload'; readonly rule: string; readonly role: string; readonly project: string };
  readonly expiresInMs: number;
  /** The ID token must not be exchanged again. */
  readonly spent: {
    /** Hexadecimal, the same on every server. */
    readonly digest: string;
    /** When the ID token has expired on every server, so that it may be forgotten. */
    readonly untilMs: number;
  };
}

interface LoginInput {
  readonly login: VerifiedLogin;
  readonly proof: TokenProof;
}

interface LoggedIn extends Decision {
  /** Of the token. */
  readonly name: string;
  readonly expiresAtMs: number;
}

/** Throws `Unauthenticated` for an ID token that was used, and `Forbidden` for a user without any role. */
export function logIn(snapshot: Snapshot, { login, proof }: LoginInput, ctx: Context): LoggedIn {
  const { spent, grant, expiresInMs } = login;
  const spentKey = keys.spentIdToken(spent.digest);
  if (snapshot.get('spentIdToken', spentKey))
    throw new ApiError('Unauthenticated', 'the ID token is refused: it was used before; get another');
  const expiresAtMs = ctx.nowMs + expiresInMs;
  const name = `${grant.kind === 'user' ? 'login' : 'workload'}-${spent.digest.slice(0, 20)}`;
  const issued = issueToken(snapshot, { name, spec: { ...specOf(snapshot, login), expiresAtMs }, proof }, ctx);
  const used = { key: spentKey, ifRevision: 0, value: { kind: 'spentIdToken', ...spent } } as const;
  return { ...issued, plan: { changes: [...issued.plan.changes, used] }, name, expiresAtMs };
}

function specOf(snapshot: Snapshot, { user, grant }: VerifiedLogin): TokenSpec {
  if (grant.kind === 'workload') {
    const { rule, role, project } = grant;
    if (rulesOfRole(snapshot, role) === undefined)
      throw new ApiError('Forbidden', `the rule "${rule}" gives the role "${role}", which does not exist`);
    const description = `workload by rule ${rule}: ${user.subject} of ${user.issuer}`.slice(0, 1024);
    return { description, role, project };
  }
  const { provider, groups } = grant;
  const tokenUser: TokenUser = { provider, subject: user.subject, name: user.name, groups: [...groups] };
  if (!hasBinding(snapshot, tokenUser)) throw unbound(tokenUser);
  return { description: `login of ${user.name}`, user: tokenUser };
}

/** Anyone may have an account at a public provider: strangers get no token, and nothing is stored of them. */
function hasBinding(snapshot: Snapshot, { provider, subject, groups }: TokenUser): boolean {
  const isTheirs = (each: BindingSubject): boolean =>
    each.provider === provider &&
    ((each.kind === 'user' && each.name === subject) || (each.kind === 'group' && groups.includes(each.name)));
  for (const { value } of snapshot.list('binding')) if (value.spec.subjects.some(isTheirs)) return true;
  return false;
}

function unbound({ provider, subject }: TokenUser): ApiError {
  return new ApiError(
    'Forbidden',
    `no binding gives the user "${subject}" of provider "${provider}", or one of the user's groups, a role; ask an admin for one`,
  );
}
