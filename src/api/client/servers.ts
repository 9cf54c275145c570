// The servers of one fleet: configured ones, and those that the fleet has announced. A client uses one until it fails.

import { backoffMs } from '../../base/backoff.ts';
import { type Clock, sleep } from '../../base/clock.ts';
import type { Prng } from '../../base/prng.ts';

/** A server that is one of several lists all of them in its responses. */
export const serversHeader = 'berth-servers';

/** What a program keeps between two runs. */
export interface KnownServers {
  readonly learned: readonly string[];
  /** The last one that worked. */
  readonly current: string;
}

export interface ServersOptions {
  /** Each without a trailing slash; at least one. */
  readonly urls: readonly string[];
  readonly known?: KnownServers | undefined;
  /** Spreads clients over the servers and in time. Absent: the others are tried in order, immediately. */
  readonly spread?: { readonly clock: Clock; readonly prng: Prng };
  /**
   * How long one of several servers may take to start a response before it counts as failed; default: the caller's own
   * limit.
   */
  readonly answerMsMax?: number;
  /** Whether an announced server may be used: one that would show a token to the network may not. Default: any may. */
  readonly mayUse?: (url: string) => boolean;
}

const learnedMax = 16;
/** With the longest wait, about as long as the caller of a busy service is used to wait. */
const retriesMax = 4;
const retryAfterSMax = 15;
const pauses = { delayMsMin: 20, delayMsMax: 1_000 };
const serverUrl = /^https?:\/\/[^\s/?#,@]+(\/[^\s?#,@]*)?$/;

export class Servers {
  readonly #options: ServersOptions;
  #learned: readonly string[];
  #current: string;
  readonly #listeners = new Set<() => void>();

  constructor(options: ServersOptions) {
    const { urls, known } = options;
    this.#options = options;
    this.#learned = (known?.learned ?? []).filter((url) => this.#isUsable(url)).slice(0, learnedMax);
    this.#current = urls[0] ?? '';
    if (known !== undefined && this.all.includes(known.current)) this.#current = known.current;
  }

  get all(): readonly string[] {
    return [...new Set([...this.#options.urls, ...this.#learned])];
  }

  /** The last one that worked. */
  get current(): string {
    return this.#current;
  }

  get known(): KnownServers {
    return { learned: this.#learned, current: this.#current };
  }

  /** See `ServersOptions`; undefined while there is only one server. */
  get limit(): { readonly clock: Clock; readonly answerMsMax: number } | undefined {
    const { spread, answerMsMax } = this.#options;
    if (spread === undefined || answerMsMax === undefined || this.all.length < 2) return undefined;
    return { clock: spread.clock, answerMsMax };
  }

  /** Calls `listener` after every change of `all` or `current`. Returns a function that removes the listener. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** A server that was not tried yet: preferably the current one. */
  untried(tried: ReadonlySet<string>): string | undefined {
    if (!tried.has(this.#current)) return this.#current;
    const left = this.all.filter((url) => !tried.has(url));
    return left[this.#options.spread?.prng.below(Math.max(1, left.length)) ?? 0];
  }

  /**
   * Waits before the next server is tried: clients that lost one server together must not move to the next at the same
   * moment.
   */
  async pause(attempt: number, signal?: AbortSignal): Promise<void> {
    const { spread } = this.#options;
    if (spread !== undefined) await sleep(spread.clock, backoffMs(attempt, pauses, spread.prng), signal);
  }

  /**
   * Waits as long as a server that refused for too many requests asks, and a little longer, so that its clients do not come
   * back together. False: not again.
   */
  async waitToRetry(
    { attempt, retryAfterS }: { readonly attempt: number; readonly retryAfterS: number },
    signal?: AbortSignal,
  ): Promise<boolean> {
    const { spread } = this.#options;
    if (spread === undefined || attempt >= retriesMax || retryAfterS > retryAfterSMax) return false;
    const delayMs = retryAfterS * 1_000;
    await sleep(spread.clock, delayMs + spread.prng.below(Math.ceil(delayMs / 5) + 1), signal);
    return signal?.aborted !== true;
  }

  worked(url: string): void {
    if (url !== this.#current) this.#change(() => (this.#current = url));
  }

  /** Switches to another server, if there is one and `url` is the current one. */
  failed(url: string): void {
    if (url !== this.#current) return;
    const next = this.untried(new Set([url]));
    if (next !== undefined) this.worked(next);
  }

  /**
   * Adds the servers that a server announced. From a TLS server it accepts TLS addresses only: elsewhere the token
   * would be readable.
   */
  learn(announced: string | null, from: string): void {
    if (announced === null) return;
    const learned = announced
      .split(',')
      .map((url) => url.trim())
      .filter((url) => this.#isUsable(url) && (url.startsWith('https:') || !from.startsWith('https:')))
      .sort()
      .slice(0, learnedMax);
    if (learned.join() === this.#learned.join()) return;
    this.#change(() => (this.#learned = learned));
  }

  #isUsable(url: string): boolean {
    return serverUrl.test(url) && (this.#options.mayUse?.(url) ?? true);
  }

  #change(make: () => void): void {
    make();
    if (!this.all.includes(this.#current)) this.#current = this.all[0] ?? '';
    for (const listener of this.#listeners) listener();
  }
}

/** `http://cp1:7070,http://cp2:7070` */
export function serverUrls(text: string): string[] {
  const urls = text.split(',').map((url) => url.trim());
  return [...new Set(urls.filter((url) => url !== ''))];
}
