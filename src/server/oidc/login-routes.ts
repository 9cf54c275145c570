// The routes of logins. Every failed login passes through one function, so that it can be counted and written down; no ID token,
// code or token appears in an error.

import type { Static } from 'typebox';
import { ApiError } from '../../api/errors.ts';
import { loginRoutes as routes } from '../../api/routes/login.ts';
import { logIn, type VerifiedLogin } from '../../core/operations/access/login.ts';
import type { Decider } from '../decide.ts';
import type { MintToken } from '../http/identity/mint-token.ts';
import { decideFor } from '../http/on-behalf.ts';
import type { Answer, Route, RouteRequest } from '../http/route.ts';
import { bind } from '../http/routes/bind.ts';
import type { Logins } from './logins.ts';

type OnLoginFailed = (address: string, reason: string) => void;

export interface LoginParts {
  readonly logins: Logins;
  readonly mint: MintToken;
  /** Not to be guessed: of a login in a browser. */
  readonly randomState: () => string;
  readonly onLoginFailed?: OnLoginFailed;
}

/** `login` undefined: no provider and no rule is configured. */
export function loginRoutes(login: LoginParts | undefined, { decider }: { readonly decider: Decider }): Route[] {
  return [
    bind(routes.providers, () => ({ status: 200, json: { providers: (login?.logins.providers ?? []).map(shown) } })),
    bind(routes.login, ({ body }, request) =>
      answered(configured(login), { decider, request }, (logins) => verified(logins, body)),
    ),
  ];
}

function shown({ name, issuer, clientId, scopes, deviceCode, clientSecret }: Logins['providers'][number]) {
  const exchange = clientSecret === undefined ? 'client' : 'server';
  return { name, issuer, clientId, scopes, deviceCode, exchange };
}

export function configured(login: LoginParts | undefined): LoginParts {
  if (login !== undefined) return login;
  throw new ApiError('NotFound', 'no login provider is configured on this server; docs/login.md says how to add one');
}

function verified(logins: Logins, { idToken, code, nonce }: Static<typeof routes.login.body>): Promise<VerifiedLogin> {
  if (idToken !== undefined && code === undefined) return logins.byIdToken(idToken, nonce);
  if (idToken !== undefined || code === undefined)
    throw new ApiError('InvalidRequest', 'give either idToken or code', { field: 'idToken' });
  if (nonce === undefined) throw new ApiError('InvalidRequest', 'nonce is missing', { field: 'nonce' });
  return logins.byCode({ ...code, nonce });
}

async function answered(
  { logins, mint, onLoginFailed }: LoginParts,
  { decider, request }: { readonly decider: Decider; readonly request: RouteRequest },
  verify: (logins: Logins) => Promise<VerifiedLogin>,
): Promise<Answer> {
  return tellingOfFailure({ onLoginFailed }, request, async () => {
    const login = await verify(logins);
    const { text, ...proof } = mint(login.grant.kind === 'user' ? 'u' : 's');
    const { decision } = await decideFor(decider, request, (snapshot, ctx) => logIn(snapshot, { login, proof }, ctx));
    const { name, expiresAtMs } = decision;
    return { status: 200, json: { token: text, name, expiresAtMs, kind: login.grant.kind, user: login.user.name } };
  });
}

export async function tellingOfFailure(
  { onLoginFailed }: Pick<LoginParts, 'onLoginFailed'>,
  request: RouteRequest,
  answer: () => Promise<Answer>,
): Promise<Answer> {
  try {
    return await answer();
  } catch (error) {
    if (error instanceof ApiError && (error.code === 'Unauthenticated' || error.code === 'Forbidden'))
      onLoginFailed?.(request.caller.address, error.message);
    throw error;
  }
}
