// The routes of logins in a browser: one begins, one ends with a session cookie. Failed logins are told as all others are.

import { ApiError } from '../../api/errors.ts';
import { browserLoginRoutes as routes } from '../../api/routes/login.ts';
import { logIn } from '../../core/operations/access/login.ts';
import { assert } from '../../base/assert.ts';
import { keys } from '../../core/state/keys.ts';
import { decideFor } from '../http/on-behalf.ts';
import type { Answer, Route, RouteRequest } from '../http/route.ts';
import { bind } from '../http/routes/bind.ts';
import { type SessionParts, sessionAnswer } from '../http/sessions/session-routes.ts';
import { browserLoginMs, callbackPath, derivedFrom, loginCookie, loginIn } from './browser-login.ts';
import { configured, type LoginParts, tellingOfFailure } from './login-routes.ts';

export function browserLoginRoutes(login: LoginParts | undefined, parts: SessionParts): Route[] {
  const { decider, secret, secure } = parts;
  return [
    bind(routes.begin, async ({ body }, request): Promise<Answer> => {
      const { logins, randomState } = configured(login);
      const state = randomState();
      const redirectUri = ownOrigin(request) + callbackPath;
      const { codeChallenge, nonce } = derivedFrom(secret, state);
      const url = await logins.authorizationUrl(body.provider, { state, nonce, codeChallenge, redirectUri });
      const begun = {
        provider: body.provider,
        state,
        redirectUri,
        returnTo: body.returnTo,
        expiresAtMs: decider.clock.nowMs() + browserLoginMs,
      };
      return { status: 200, json: { url }, headers: { 'set-cookie': loginCookie(begun, { secret, secure }) } };
    }),
    bind(routes.finish, ({ body: { code, state, iss } }, request) => {
      const { logins, mint, ...told } = configured(login);
      return tellingOfFailure(told, request, async () => {
        const nowMs = decider.clock.nowMs();
        const begun = loginIn(request.headers['cookie'], { secret, secure, state, nowMs });
        const { provider, redirectUri } = begun;
        const { codeVerifier, nonce } = derivedFrom(secret, state);
        const verified = await logins.byBrowserCode({ provider, code, codeVerifier, redirectUri, nonce }, iss);
        const { text: _unused, ...proof } = mint('u'); // the session stands for it: no page gets its text
        const { decision } = await decideFor(decider, request, (snapshot, ctx) =>
          logIn(snapshot, { login: verified, proof }, ctx),
        );
        const token = decider.cache.get('token', keys.token(decision.name))?.value;
        assert(token !== undefined, 'a token that was issued is there');
        const by = { kind: 'token', name: decision.name, uid: token.metadata.id, tokenId: proof.tokenId } as const;
        return sessionAnswer(by, parts, { returnTo: begun.returnTo });
      });
    }),
  ];
}

/** Of our page. Browsers send it with every request that writes. */
function ownOrigin({ headers: { origin, host } }: RouteRequest): string {
  const url = origin === undefined ? null : URL.parse(origin);
  if (url !== null && url.host === host) return url.origin;
  throw new ApiError('Forbidden', 'a login can be begun only by the page of this server');
}
