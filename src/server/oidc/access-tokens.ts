// Access tokens of the configured providers on one resource of this server. Each is verified once and exchanged for a token of Berth, which
// never leaves this process: what the token may do, and whether it was revoked, is then asked as for any other.

import { createHash } from 'node:crypto';
import { ApiError } from '../../api/errors.ts';
import { anonymous } from '../../core/access/principal.ts';
import { logIn } from '../../core/operations/access/login.ts';
import { type AuditParts, openTrail } from '../audit/trail.ts';
import type { Decider } from '../decide.ts';
import type { Caller } from '../http/caller.ts';
import type { Identity, Shown } from '../http/identity/authenticate.ts';
import { decideFor } from '../http/on-behalf.ts';
import type { LoginParts } from './login-routes.ts';

export interface AccessTokensParts {
  readonly login: LoginParts;
  readonly decider: Decider;
  readonly audit: AuditParts | undefined;
  /** Their audience: the URL of the resource. Only requests for its path may show such tokens. */
  readonly audience: string;
  /** Of this process: another server exchanges the same token for another one. */
  readonly salt: Uint8Array;
}

type Identify = (shown: Shown) => Identity | Promise<Identity>;

interface Exchanged {
  readonly token: Promise<string>;
  /** When it is forgotten. */
  untilMs: number;
}

const keptMax = 1_000;
const form = /^Bearer ([\w-]+\.[\w-]+\.[\w-]+)$/i;

export class AccessTokens {
  readonly #parts: AccessTokensParts;
  readonly #path: string;
  /** By the digest of an access token. */
  readonly #exchanged = new Map<string, Exchanged>();

  constructor(parts: AccessTokensParts) {
    this.#parts = parts;
    this.#path = new URL(parts.audience).pathname;
  }

  /** Who shows it. `next` is asked about everything else, and about the token that an access token is exchanged for. */
  identify(shown: Shown, next: Identify): Identity | Promise<Identity> {
    const { url, authorizations } = shown;
    const [, text] = (authorizations.length === 1 && form.exec(authorizations[0] ?? '')) || [];
    if (text === undefined || url.split('?', 1)[0] !== this.#path) return next(shown);
    return this.#identifyBy(text, shown, next);
  }

  async #identifyBy(text: string, shown: Shown, next: Identify): Promise<Identity> {
    let token: string;
    try {
      token = await this.#tokenFor(text, shown.address);
    } catch (error) {
      if (!(error instanceof ApiError) || error.code === 'Unavailable') throw error;
      this.#parts.login.onLoginFailed?.(shown.address, error.message);
      return error;
    }
    return next({ ...shown, authorizations: [`Bearer ${token}`] });
  }

  #tokenFor(text: string, address: string): Promise<string> {
    const nowMs = this.#parts.decider.clock.nowMs();
    const digest = createHash('sha256').update(this.#parts.salt).update(text).digest('hex');
    const known = this.#exchanged.get(digest);
    if (known !== undefined && nowMs < known.untilMs) return known.token;
    const exchanged: Exchanged = {
      token: this.#exchange(text, { digest, address }),
      untilMs: Number.POSITIVE_INFINITY,
    };
    this.#exchanged.delete(digest);
    const [oldest] = this.#exchanged.keys();
    if (oldest !== undefined && this.#exchanged.size >= keptMax) this.#exchanged.delete(oldest);
    this.#exchanged.set(digest, exchanged);
    exchanged.token.catch(() => this.#exchanged.delete(digest));
    return exchanged.token;
  }

  async #exchange(
    text: string,
    { digest, address }: { readonly digest: string; readonly address: string },
  ): Promise<string> {
    const { login, decider, audience, audit } = this.#parts;
    const verified = await login.logins.byAccessToken(text, audience);
    const { text: token, ...proof } = login.mint('u');
    const spent = { digest, untilMs: decider.clock.nowMs() + verified.expiresInMs };
    const caller: Caller = { principal: anonymous, requestId: `mcp_${digest.slice(0, 16)}`, address, face: 'mcp' };
    if (audit) openTrail(audit, caller, { verb: 'login', kind: 'token' });
    const { decision } = await decideFor(decider, { caller }, (snapshot, ctx) =>
      logIn(snapshot, { login: { ...verified, spent }, proof }, ctx),
    );
    const exchanged = this.#exchanged.get(digest);
    if (exchanged) exchanged.untilMs = decision.expiresAtMs;
    return token;
  }
}
