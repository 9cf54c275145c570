// Who may send how much: requests by address until they have shown who sends them, and by principal from then on; failed logins by
// address only, so that a stranger can lock out no account. The admin token is not limited. It parses nothing and decides no access.

import { ApiError } from '../../api/errors.ts';
import type { Socket } from 'node:net';
import type { Clock } from '../../base/clock.ts';
import { limitedAddress } from './address.ts';
import { Held } from './held.ts';
import type { LimitsConfig } from './limits-config.ts';
import { Rates } from './rates.ts';

/** Whose requests are counted together; undefined in its place: they are not limited. */
export interface Limited {
  readonly kind: 'token' | 'host';
  /** The id of a token, or the name of a host. */
  readonly id: string;
}

type HeldKind = 'connections' | 'streams' | 'watches';

export interface Arrival {
  readonly remoteAddress: string | undefined;
  /** `unknown`: no valid token. */
  readonly from: Limited | 'unlimited' | 'unknown';
  /** Whether it came with a token. */
  readonly withToken: boolean;
}

export type Admission =
  | { readonly admitted: true }
  /** It is answered after that time. */
  | { readonly admitted: true; readonly delayMs: number }
  | { readonly admitted: false; readonly error: ApiError };

const admitted: Admission = { admitted: true };
/** Longer than a person needs to see that the token is wrong, and short against the timeouts of clients. */
const delayMsMax = 5_000;
/** Answers to one address that are delayed at a time; more are refused at once. */
const delayedMax = 32;

export class RequestLimits {
  readonly #config: LimitsConfig;
  readonly #clock: Clock;
  readonly #addressOf: (remoteAddress: string | undefined) => string | undefined;
  readonly #byAddress: Rates;
  readonly #byToken: Rates;
  readonly #byHost: Rates;
  readonly #failures: Rates;
  /** By address. */
  readonly #delayed = new Held();
  readonly #held: Readonly<Record<HeldKind, Held>> = {
    connections: new Held(),
    streams: new Held(),
    watches: new Held(),
  };
  #refused = 0;

  constructor(config: LimitsConfig, { clock, addressOf = limitedAddress }: LimitsParts) {
    this.#config = config;
    this.#clock = clock;
    this.#addressOf = addressOf;
    this.#byAddress = new Rates({ perSecond: config.addressRequestsPerSecond, burst: config.addressBurst }, { clock });
    this.#byToken = new Rates({ perSecond: config.tokenRequestsPerSecond, burst: config.tokenBurst }, { clock });
    this.#byHost = new Rates({ perSecond: config.hostRequestsPerSecond, burst: config.hostBurst }, { clock });
    const { failedLoginsPerMinute: burst } = config;
    this.#failures = new Rates({ perSecond: burst / 60, burst }, { clock });
  }

  /** For the metrics. */
  get refused(): number {
    return this.#refused;
  }

  /** A request has come; nothing of its body has been read. */
  admit({ remoteAddress, from, withToken }: Arrival): Admission {
    if (from === 'unlimited') return admitted;
    if (from !== 'unknown') return this.#admitKnown(from);
    const address = this.#addressOf(remoteAddress);
    if (address === undefined) return admitted;
    const waitMs = this.#byAddress.take(address);
    if (waitMs > 0) return this.#refuse('too many requests without a valid token from your address', waitMs);
    return withToken ? this.#failed(address) : admitted;
  }

  /** One more of these for as long as the caller wants. Throws `TooManyRequests`. */
  hold(kind: HeldKind, from: Limited | 'unlimited'): () => void {
    if (from === 'unlimited') return () => {};
    const max = this.#maxOf(kind, from.kind);
    const release = this.#held[kind].take(`${from.kind} ${from.id}`, max);
    if (release) return release;
    this.#refused += 1;
    throw tooMany(`${max} ${kind} are open with this ${from.kind === 'host' ? "host's " : ''}token already`, 1_000);
  }

  /** Calls `answer` after that time; never, when the connection is closed before. */
  delay({ socket }: { readonly socket: Socket }, delayMs: number, answer: () => void): void {
    const release = this.#delayed.take(this.#addressOf(socket.remoteAddress) ?? '', Number.POSITIVE_INFINITY);
    const over = (): void => {
      socket.off('close', over);
      timer.cancel();
      release?.();
      if (!socket.destroyed) answer();
    };
    const timer = this.#clock.setTimer(delayMs, over, { background: true });
    socket.once('close', over);
  }

  #admitKnown(from: Limited): Admission {
    const isHost = from.kind === 'host';
    const waitMs = (isHost ? this.#byHost : this.#byToken).take(from.id);
    if (waitMs === 0) return admitted;
    return this.#refuse(
      isHost ? `too many requests of host "${from.id}"` : 'too many requests with this token',
      waitMs,
    );
  }

  #failed(address: string): Admission {
    const waitMs = this.#failures.take(address);
    if (waitMs === 0) return admitted;
    if (this.#delayed.count(address) >= delayedMax)
      return this.#refuse('too many invalid tokens from your address', waitMs);
    return { admitted: true, delayMs: Math.min(waitMs, delayMsMax) };
  }

  #maxOf(kind: HeldKind, of: Limited['kind']): number {
    const { tokenConnections, tokenStreams, tokenWatches, hostConnections, hostStreams, hostWatches } = this.#config;
    const max = {
      token: { connections: tokenConnections, streams: tokenStreams, watches: tokenWatches },
      host: { connections: hostConnections, streams: hostStreams, watches: hostWatches },
    };
    return max[of][kind];
  }

  #refuse(why: string, waitMs: number): Admission {
    this.#refused += 1;
    return { admitted: false, error: tooMany(why, waitMs) };
  }
}

export interface LimitsParts {
  readonly clock: Clock;
  /** Default: without this machine's own. */
  readonly addressOf?: (remoteAddress: string | undefined) => string | undefined;
}

function tooMany(why: string, waitMs: number): ApiError {
  const retryAfterS = Math.max(1, Math.ceil(waitMs / 1_000));
  return new ApiError('TooManyRequests', `${why}; try again in ${retryAfterS} s`, { details: { retryAfterS } });
}
