// What stays open after its request was allowed: watches, streams, connections to guests. When rights change or end, each is asked
// about again, and closed if it would not be allowed now.
//
//   entered ──▶ open ── a token, role or binding changed, or its time is over ──▶ asked again ──▶ open, or ended

import { ApiError } from '../../../api/errors.ts';
import type { Clock, Timer } from '../../../base/clock.ts';
import type { Principal } from '../../../core/access/principal.ts';
import type { Question } from '../../../core/access/question.ts';
import { accessVersion, rightsOf } from '../../../core/access/rights-of.ts';
import { standingOf } from '../../../core/access/standing.ts';
import type { Cache } from '../../../core/state/cache.ts';
import { keys } from '../../../core/state/keys.ts';

export interface LiveSession {
  readonly principal: Principal;
  /** What must stay allowed; absent: its rights must stay what they are, for they decide what it is sent. */
  readonly question?: Question | undefined;
  /** `accessVersion` when it was allowed; absent: now. */
  readonly since?: number;
  /** Called once, and never after it has left. */
  readonly end: (why: ApiError) => void;
}

interface Open extends LiveSession {
  readonly rightsKey: string;
  /** Of the admin token then. */
  readonly operatorDigest: string | undefined;
}

/** Wall clocks jump: no timer is longer. */
const lookEveryMs = 30_000;

export class LiveSessions {
  readonly #cache: Cache;
  readonly #clock: Clock;
  readonly #open = new Set<Open>();
  readonly #forget: () => void;
  #version: number;
  #planned = false;
  #timer: Timer | undefined;

  constructor({ cache, clock }: { readonly cache: Cache; readonly clock: Clock }) {
    this.#cache = cache;
    this.#clock = clock;
    this.#version = accessVersion(cache);
    this.#forget = cache.onCommitted((key) => {
      if (key === keys.cluster || accessVersion(cache) !== this.#version) this.#planLook();
    });
  }

  get count(): number {
    return this.#open.size;
  }

  /** Returns a function to call when it is over. */
  enter(session: LiveSession): () => void {
    const { principal } = session;
    // A host's are ended with the host.
    if (principal.kind !== 'token' && principal.kind !== 'admin') return () => {};
    const { key: rightsKey } = rightsOf(principal, this.#cache);
    const open = { ...session, rightsKey, operatorDigest: this.#operatorDigest };
    this.#open.add(open);
    if (session.since !== undefined && session.since !== accessVersion(this.#cache)) this.#endStale(open);
    this.#setTimer(this.#endOf(open));
    return () => this.#open.delete(open);
  }

  stop(): void {
    this.#forget();
    this.#timer?.cancel();
    this.#open.clear();
  }

  /** Rights changed while the request was handled: which of them it saw is not known. */
  #endStale(open: Open): void {
    const why = this.#whyEnded({ ...open, rightsKey: '' });
    if (why === undefined) return;
    this.#open.delete(open);
    open.end(why);
  }

  /** After all of one commit is in the cache. */
  #planLook(): void {
    if (this.#planned) return;
    this.#planned = true;
    queueMicrotask(() => {
      this.#planned = false;
      this.#look();
    });
  }

  #look(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#version = accessVersion(this.#cache);
    let nextEndMs = Number.POSITIVE_INFINITY;
    for (const open of this.#open) {
      const why = this.#whyEnded(open);
      if (why === undefined) nextEndMs = Math.min(nextEndMs, this.#endOf(open));
      else {
        this.#open.delete(open);
        open.end(why);
      }
    }
    this.#setTimer(nextEndMs);
  }

  #whyEnded({ principal, question, rightsKey, operatorDigest }: Open): ApiError | undefined {
    if (principal.kind === 'admin') return operatorDigest === this.#operatorDigest ? undefined : ended('was replaced');
    const fault = whyNotStanding(principal, { cache: this.#cache, nowMs: this.#clock.nowMs() });
    if (fault !== undefined) return fault;
    const rights = rightsOf(principal, this.#cache);
    if (rights.key === rightsKey) return undefined;
    if (question === undefined) return new ApiError('Forbidden', 'what the token permits has changed; begin again');
    return rights.allows(question) ? undefined : new ApiError('Forbidden', 'the token does not permit this any more');
  }

  #endOf({ principal }: Open): number {
    return rightsOf(principal, this.#cache).expiresAtMs;
  }

  #setTimer(endMs: number): void {
    if (endMs === Number.POSITIVE_INFINITY) return;
    const delayMs = Math.min(Math.max(0, endMs - this.#clock.nowMs()), lookEveryMs);
    if (this.#timer !== undefined && delayMs === lookEveryMs) return;
    this.#timer?.cancel();
    this.#timer = this.#clock.setTimer(delayMs, () => this.#look(), { background: true });
  }

  get #operatorDigest(): string | undefined {
    return this.#cache.committed('cluster', keys.cluster)?.value.operatorDigest;
  }
}

/** Why a token that was valid opens nothing now; undefined: it still does, or is no token. */
export function whyNotStanding(
  principal: Principal,
  { cache, nowMs }: { readonly cache: Cache; readonly nowMs: number },
): ApiError | undefined {
  if (principal.kind !== 'token') return undefined;
  const token = cache.committed('token', keys.token(principal.name))?.value;
  if (token?.metadata.id !== principal.uid) return ended('was revoked');
  const standing = standingOf(token, nowMs, (key) => cache.committed('token', key));
  return standing === 'valid'
    ? undefined
    : ended(standing === 'expired' ? 'has expired' : 'was revoked with its owner');
}

function ended(how: string): ApiError {
  return new ApiError('Unauthenticated', `the token ${how}`);
}
