// A login in a browser: authorization code with PKCE, exchanged by this server (RFC 7636, RFC 9700). A cookie that scripts cannot read binds it
// to the browser that began it. It holds a sealed state, from which verifier and nonce are derived: servers keep no state, and any server can
// finish a login that another one began.
//
//   page ── begin ──▶ server: cookie, URL ──▶ page goes to the provider ──▶ /ui/login/callback?code ── finish ──▶ session cookie

import { createHash, createHmac } from 'node:crypto';
import { ApiError } from '../../api/errors.ts';
import { isRecord } from '../../base/is-record.ts';
import { openSealedText, sealText } from '../sealing/sealed-text.ts';

export interface BrowserLogin {
  readonly provider: string;
  readonly state: string;
  readonly redirectUri: string;
  /** The page of the dashboard where the login began. */
  readonly returnTo: string;
  readonly expiresAtMs: number;
}

const purpose = 'berth browser login 1';
export const browserLoginMs = 600_000;
export const callbackPath = '/ui/login/callback';
/** The path of the cookie: only the routes that begin and finish logins. */
const cookiePath = '/v1/session/login';

export function loginCookie(
  login: BrowserLogin,
  { secret, secure }: { readonly secret: Uint8Array; readonly secure: boolean },
): string {
  const parts = [
    `${cookieName(secure)}=${sealText({ secret, purpose }, login)}`,
    `Path=${cookiePath}`,
    'HttpOnly',
    'SameSite=Strict', // the callback is a page of ours, which sends the code from there
    `Max-Age=${browserLoginMs / 1000}`,
  ];
  return [...parts, ...(secure ? ['Secure'] : [])].join('; ');
}

/** Throws `Unauthenticated` when this browser did not begin this login. */
export function loginIn(
  cookie: string | undefined,
  { secret, secure, state, nowMs }: { secret: Uint8Array; secure: boolean; state: string; nowMs: number },
): BrowserLogin {
  const begin = `${cookieName(secure)}=`;
  const found = cookie?.split(';').find((part) => part.trim().startsWith(begin));
  const login = found && openSealedText({ secret, purpose }, found.trim().slice(begin.length));
  if (!isBrowserLogin(login) || login.state !== state)
    throw new ApiError('Unauthenticated', 'this browser did not begin this login; log in again');
  if (login.expiresAtMs <= nowMs) throw new ApiError('Unauthenticated', 'this login took too long; log in again');
  return login;
}

/** Only this server's fleet can derive them, and only for a login that one of its servers began. */
export function derivedFrom(secret: Uint8Array, state: string) {
  const derive = (what: string): string =>
    createHmac('sha256', secret).update(`${purpose} ${what}\n${state}`).digest('base64url');
  const codeVerifier = derive('verifier');
  const codeChallenge = createHash('sha256').update(codeVerifier).digest('base64url');
  return { codeVerifier, codeChallenge, nonce: derive('nonce') };
}

function cookieName(secure: boolean): string {
  return secure ? '__Secure-berth-login' : 'berth-login';
}

function isBrowserLogin(value: unknown): value is BrowserLogin {
  if (!isRecord(value)) return false;
  const { provider, state, redirectUri, returnTo, expiresAtMs } = value;
  return (
    [provider, state, redirectUri, returnTo].every((each) => typeof each === 'string') &&
    typeof expiresAtMs === 'number'
  );
}
