// Who sends a request: by the token in its Authorization header, by the certificate of a host, or by the cookie of a session. Each request
// is looked up in what the store says now; nothing is remembered of earlier ones. No text of a token is kept or logged.

import { hash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { ApiError } from '../../../api/errors.ts';
import { looksLikeToken, parseToken, type TokenText } from '../../../api/token-text.ts';
import type { Clock } from '../../../base/clock.ts';
import type { Principal } from '../../../core/access/principal.ts';
import { standingOf } from '../../../core/access/standing.ts';
import { hostGenerationOf } from '../../../core/operations/access/host-generation.ts';
import type { Cache } from '../../../core/state/cache.ts';
import { keys } from '../../../core/state/keys.ts';
import { hostOfCertificate, type ShownCertificate, shownCertificate } from '../../tls/host-certificate.ts';
import { isOfPresentAdmin, openSession } from '../sessions/session.ts';
import { sessionShownBy, type ShownSession } from '../sessions/session-cookie.ts';
import type { Freshness } from './freshness.ts';
import { hostOfToken } from '../tokens.ts';

/** What a request shows of its sender. */
export interface Shown {
  /** The value of each Authorization header. */
  readonly authorizations: readonly string[];
  /** Issued by the fleet's authority; not looked up yet. */
  readonly certificate: ShownCertificate | undefined;
  /** The cookie of a page; absent: none. */
  readonly session?: ShownSession | undefined;
  readonly address: string;
  /** Path and query. */
  readonly url: string;
}

/** Who it is; an error: why what was shown does not count; undefined: nothing was shown. */
export type Identity = Principal | ApiError | undefined;

export type AuthenticationFailure =
  | 'not-bearer'
  | 'repeated-header'
  | 'in-query'
  | 'malformed'
  | 'wrong-kind'
  | 'unknown'
  | 'wrong-secret'
  | 'expired'
  | 'revoked'
  | 'certificate'
  | 'other-page'
  | 'session';

export interface AuthenticatorParts {
  readonly cache: Cache;
  readonly clock: Clock;
  readonly freshness: Freshness;
  /** The tokens of hosts and the cookies of sessions are made from it. */
  readonly hostSecret: Uint8Array;
  /** A token was used. */
  readonly onUsed: (use: { readonly name: string; readonly uid: string; readonly lastUsedAtMs: number }) => void;
  /** A request had credentials that are invalid. */
  readonly onFailed?: (failure: { readonly address: string; readonly reason: AuthenticationFailure }) => void;
}

const textLengthMax = 512;

export class Authenticator {
  readonly #parts: AuthenticatorParts;

  constructor(parts: AuthenticatorParts) {
    this.#parts = parts;
  }

  /** A promise when the store has to be asked first; it rejects with `Unavailable`. */
  identify(shown: Shown): Identity | Promise<Identity> {
    const { freshness } = this.#parts;
    const shows = shown.authorizations.length > 0 || shown.certificate !== undefined || shown.session !== undefined;
    if (shows && !freshness.fresh) return freshness.refresh().then(() => this.#told(shown, this.#look(shown)));
    const found = this.#look(shown);
    if (found === 'unknown' && freshness.mayAskAgain)
      return freshness.refresh().then(() => this.#told(shown, this.#look(shown)));
    return this.#told(shown, found);
  }

  #told({ address }: Shown, found: Principal | AuthenticationFailure | undefined): Identity {
    if (typeof found !== 'string') return found;
    this.#parts.onFailed?.({ address, reason: found });
    return new ApiError('Unauthenticated', messages[found]);
  }

  #look(shown: Shown): Principal | AuthenticationFailure | undefined {
    const [authorization, second] = shown.authorizations;
    if (authorization === undefined) return this.#lookAround(shown);
    if (second !== undefined) return 'repeated-header';
    const text = /^Bearer ([!-~]+)$/i.exec(authorization)?.[1];
    if (text === undefined) return 'not-bearer';
    if (text.length > textLengthMax) return 'malformed';
    const digest = digestOf(text);
    if (equal(digest, this.#parts.cache.committed('cluster', keys.cluster)?.value.operatorDigest))
      return { kind: 'admin' };
    const { cache, hostSecret } = this.#parts;
    const host = hostOfToken(hostSecret, text, (name) => hostGenerationOf(cache, name));
    if (host !== undefined) return { kind: 'host', host };
    const token = parseToken(text);
    if (token === undefined) return looksLikeToken(text) ? 'malformed' : 'unknown';
    return token.kind === 'u' || token.kind === 's' ? this.#lookUp(token, digest) : 'wrong-kind';
  }

  /** Without a header. */
  #lookAround({ certificate, session, url }: Shown): Principal | AuthenticationFailure | undefined {
    const { cache, clock } = this.#parts;
    const host = hostOfCertificate(cache, certificate, clock.nowMs());
    if (host !== undefined && certificate !== undefined) return { kind: 'host', host, serial: certificate.serial };
    if (certificate !== undefined) return 'certificate';
    if (session !== undefined) return this.#lookUpSession(session);
    return tokenInQuery.test(url) ? 'in-query' : undefined;
  }

  #lookUp({ id }: TokenText, digest: string): Principal | AuthenticationFailure {
    const { cache } = this.#parts;
    const credential = cache.committed('credential', keys.credential(id))?.value;
    const right = equal(digest, credential?.digest);
    if (credential === undefined) return 'unknown';
    if (!right) return 'wrong-secret';
    return this.#standing({ kind: 'token', name: credential.token, uid: credential.uid, tokenId: id });
  }

  /** Of a token whose bearer has proved to have it. */
  #standing(principal: Extract<Principal, { kind: 'token' }>): Principal | AuthenticationFailure {
    const { cache, clock, onUsed } = this.#parts;
    const { name, uid } = principal;
    const token = cache.committed('token', keys.token(name))?.value;
    if (token === undefined || token.metadata.id !== uid) return 'unknown';
    const standing = standingOf(token, clock.nowMs(), (key) => cache.committed('token', key));
    if (standing !== 'valid') return standing;
    onUsed({ name, uid, lastUsedAtMs: token.status.lastUsedAtMs ?? 0 });
    return principal;
  }

  #lookUpSession({ text, fromOwnPage }: ShownSession): Principal | AuthenticationFailure {
    if (!fromOwnPage) return 'other-page';
    const { cache, clock, hostSecret } = this.#parts;
    const session = openSession(hostSecret, 'berth session 1', text);
    if (session === undefined || session.expiresAtMs <= clock.nowMs()) return 'session';
    if (session.by.kind === 'token') return this.#standing(session.by);
    return isOfPresentAdmin(session, cache) ? session.by : 'session';
  }
}

/** What the request shows. Node keeps the first of several Authorization headers; another server in between may have read the last. */
export function shownBy(request: IncomingMessage, isPlacement = isUnderPlacement(request)): Shown {
  const { headers, rawHeaders, socket, url = '' } = request;
  const authorizations: string[] = [];
  if (headers.authorization !== undefined)
    for (let i = 0; i < rawHeaders.length; i += 2)
      if (rawHeaders[i]?.length === 13 && rawHeaders[i]?.toLowerCase() === 'authorization')
        authorizations.push(rawHeaders[i + 1] ?? '');
  const openStack = isPlacement ? openStackToken(request) : undefined;
  if (openStack !== undefined && authorizations.length === 0) authorizations.push(`Bearer ${openStack}`);
  const certificate = shownCertificate(socket);
  const session = sessionShownBy(request);
  return { authorizations, certificate, session, address: socket.remoteAddress ?? '', url };
}

/** Clients of the Placement API have a header of their own for what we call a bearer token. Elsewhere it means nothing. */
export function openStackToken({ headers }: Pick<IncomingMessage, 'headers'>): string | undefined {
  const token = headers['x-auth-token'];
  return typeof token === 'string' && token !== '' ? token : undefined;
}

function isUnderPlacement({ url = '' }: IncomingMessage): boolean {
  return /^\/placement(?=[/?]|$)/.test(url);
}

/** SHA-256, hex. 256 random bits need no slow hash. */
export function digestOf(text: string): string {
  return hash('sha256', text, 'hex');
}

const dummy = '0'.repeat(64);

/** As long for a token that there is not as for one that there is. */
function equal(digest: string, known: string | undefined): boolean {
  left.write(digest, 'latin1');
  right.write(known ?? dummy, 'latin1');
  return timingSafeEqual(left, right) && known !== undefined && known.length === dummy.length;
}

/** Used within one call: each request compares several digests. */
const left = Buffer.alloc(dummy.length);
const right = Buffer.alloc(dummy.length);

const tokenInQuery = /[?&][^=&]*(?:token|authorization|api_?key|auth)[^=&]*=|berth_[usjh]_/i;

const messages: Readonly<Record<AuthenticationFailure, string>> = {
  'not-bearer': 'the header must be "Authorization: Bearer TOKEN"; no other scheme is known',
  'repeated-header': 'the request has several Authorization headers',
  'in-query':
    'a token in the URL is not read, because URLs are logged; send it in the header "Authorization: Bearer TOKEN", and revoke it if anybody may have seen the URL',
  malformed: 'this token is not complete, or mistyped: copy all of it, from "berth" to the last letter',
  'wrong-kind': 'this token is for joining hosts, not for requests: "berth agent join URL TOKEN"',
  unknown: 'this token is not valid: it is of another fleet, or was revoked',
  'wrong-secret': 'this token is not valid: it is of another fleet, or was revoked',
  expired: 'this token has expired; log in again, or ask for another',
  revoked: 'the token that made this one was revoked',
  'other-page': 'the cookie of a session counts only for requests of the dashboard’s own pages',
  session: 'this session has ended; log in again',
  certificate: 'this certificate is no longer valid: the host was removed, or another certificate took its place',
};
