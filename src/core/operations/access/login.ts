// What becomes of a login: a token, once for each ID token. A person's has what bindings give to the user and the groups; a
// workload's has the role of the rule that admitted it.

import { ApiError } from '../../../api/errors.ts';
import type { BindingSubject } from '../../../api/resources/binding.ts';
import type { Token, TokenSpec, TokenUser } from '../../../api/resources/token.ts';
import { isBuiltInRole } from '../../../api/access.ts';
import type { Context } from '../../state/context.ts';
import { keys } from '../../state/keys.ts';
import type { Snapshot } from '../../state/snapshot.ts';
import { schemaVersion } from '../../state/upgrade.ts';
import { newMetadata } from '../create.ts';
import type { Decision } from '../decision.ts';

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

/** The secret half of the new token. */
export interface NewCredential {
  readonly tokenId: string;
  readonly digest: string;
}

interface LoginInput {
  readonly login: VerifiedLogin;
  readonly credential: NewCredential;
}

/** Throws `Unauthenticated` for an ID token that was used, and `Forbidden` for a user without any role. */
export function logIn(
  snapshot: Snapshot,
  { login, credential }: LoginInput,
  ctx: Context,
): Decision & { readonly token: Token } {
  const { spent } = login;
  const spentKey = keys.spentIdToken(spent.digest);
  if (snapshot.get('spentIdToken', spentKey))
    throw new ApiError('Unauthenticated', 'the ID token is refused: it was used before; get another');
  const spec = specOf(snapshot, login, ctx);
  const name = `${login.grant.kind === 'user' ? 'login' : 'workload'}-${spent.digest.slice(0, 20)}`;
  const key = keys.token(name);
  const token: Token = {
    kind: 'token',
    schemaVersion,
    metadata: newMetadata(ctx.newId('tok'), { project: '', name, labels: {}, spec }, ctx),
    spec,
    status: { tokenId: credential.tokenId },
  };
  return {
    plan: {
      changes: [
        { key, ifRevision: 0, value: token },
        {
          key: keys.credential(credential.tokenId),
          ifRevision: 0,
          value: { kind: 'credential', ...credential, token: name, uid: token.metadata.id },
        },
        { key: spentKey, ifRevision: 0, value: { kind: 'spentIdToken', ...spent } },
      ],
    },
    key,
    changed: true,
    token,
  };
}

function specOf(snapshot: Snapshot, { user, grant, expiresInMs }: VerifiedLogin, ctx: Context): TokenSpec {
  const expiresAtMs = ctx.nowMs + expiresInMs;
  if (grant.kind === 'workload') {
    const { rule, role, project } = grant;
    if (!isBuiltInRole(role) && !snapshot.get('role', keys.role(role)))
      throw new ApiError('Forbidden', `the rule "${rule}" gives the role "${role}", which does not exist`);
    const description = `workload by rule ${rule}: ${user.subject} of ${user.issuer}`.slice(0, 1024);
    return { description, role, project, expiresAtMs };
  }
  const { provider, groups } = grant;
  const tokenUser: TokenUser = { provider, subject: user.subject, name: user.name, groups: [...groups] };
  if (!hasBinding(snapshot, tokenUser)) throw unbound(tokenUser);
  return { description: `login of ${user.name}`, user: tokenUser, expiresAtMs };
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
