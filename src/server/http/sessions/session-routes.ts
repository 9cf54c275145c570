// A browser's session: begun by a token or a link, ended by its user. No state is kept but in the cookie, and the links that were used.

import { sessionRoutes as routes } from '../../../api/routes/session.ts';
import { ApiError } from '../../../api/errors.ts';
import type { Principal } from '../../../core/access/principal.ts';
import { standingOf } from '../../../core/access/standing.ts';
import { useOnce } from '../../../core/operations/access/use-once.ts';
import { newId } from '../../../base/ids.ts';
import { keys } from '../../../core/state/keys.ts';
import type { Snapshot } from '../../../core/state/snapshot.ts';
import type { Decider } from '../../decide.ts';
import { decideFor } from '../on-behalf.ts';
import type { Answer, Route } from '../route.ts';
import { bind } from '../routes/bind.ts';
import { isOfPresentAdmin, openSession, sealSession, type Session, sessionOf } from './session.ts';
import { cookieText } from './session-cookie.ts';

export interface SessionParts {
  readonly decider: Decider;
  /** Of the fleet. */
  readonly secret: Uint8Array;
  /** This server speaks HTTPS. */
  readonly secure: boolean;
}

const linkMs = 600_000;

export function sessionRoutes({ decider, secret, secure }: SessionParts): Route[] {
  const { cache, clock } = decider;
  const begin = (principal: Principal): Answer => sessionAnswer(principal, { decider, secret, secure });
  return [
    bind(routes.begin, (_, { caller }) => begin(caller.principal)),
    bind(routes.end, () => ({
      status: 200,
      json: {},
      headers: { 'set-cookie': cookieText('', { secure, maxAgeMs: 0 }) },
    })),
    bind(routes.link, (_, { caller }) => {
      const nowMs = clock.nowMs();
      const expiresAtMs = nowMs + linkMs;
      const link = {
        ...sessionFor(caller.principal, cache, nowMs),
        expiresAtMs,
        nonce: newId('link', nowMs, decider.prng),
      };
      const text = sealSession(secret, 'berth session link 1', link);
      return { status: 200, json: { path: `/ui/#link=${text}`, expiresAtMs } };
    }),
    bind(routes.open, async ({ body }, request) => {
      const link = openSession(secret, 'berth session link 1', body.link);
      if (link?.nonce === undefined)
        throw new ApiError('Unauthenticated', 'this link is not from this fleet, or was cut');
      const { nonce, expiresAtMs } = link;
      await decideFor(decider, request, (snapshot, ctx) => {
        assertStands(link, snapshot, ctx.nowMs);
        return useOnce(
          snapshot,
          { kind: 'link', nonce, expiresAtMs, advice: 'get another with "berth dashboard"' },
          ctx,
        );
      });
      return begin(link.by);
    }),
  ];
}

/** Begins a session: its cookie, and `more` in the answer. */
export function sessionAnswer(
  principal: Principal,
  { decider: { cache, clock }, secret, secure }: SessionParts,
  more: object = {},
): Answer {
  const nowMs = clock.nowMs();
  const session = sessionFor(principal, cache, nowMs);
  const value = sealSession(secret, 'berth session 1', session);
  const cookie = cookieText(value, { secure, maxAgeMs: session.expiresAtMs - nowMs });
  return { status: 200, json: { expiresAtMs: session.expiresAtMs, ...more }, headers: { 'set-cookie': cookie } };
}

function sessionFor(principal: Principal, snapshot: Snapshot, nowMs: number): Session {
  const session = sessionOf(principal, snapshot, nowMs);
  if (session !== undefined) return session;
  throw new ApiError('Forbidden', 'only people and programs with a token of this fleet can open the dashboard');
}

/** The token of a link may have been revoked since. */
function assertStands(session: Session, snapshot: Snapshot, nowMs: number): void {
  const { by } = session;
  const token = by.kind === 'token' ? snapshot.get('token', keys.token(by.name))?.value : undefined;
  const stands =
    by.kind === 'admin'
      ? isOfPresentAdmin(session, snapshot)
      : token?.metadata.id === by.uid && standingOf(token, nowMs, (key) => snapshot.get('token', key)) === 'valid';
  if (!stands) throw new ApiError('Unauthenticated', 'the token that made this link was revoked or has expired');
}
