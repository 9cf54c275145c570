// The servers of one fleet: those that were configured, and those that the fleet has announced. One of them is used until it fails.

import { backoffMs } from '../base/backoff.ts';
import { type Clock, sleep } from '../base/clock.ts';
import type { Prng } from '../base/prng.ts';

/** A server of several names them all in its answers. */
export const serversHeader = 'berth-servers';

/** What is worth remembering from one run of a program to the next. */
export interface KnownServers {
  readonly learned: readonly string[];
  /** The one that worked last. */
  readonly current: string;
}

export interface ServersOptions {
  /** Each without a trailing slash; at least one. */
  readonly urls: readonly string[];
  readonly known?: KnownServers | undefined;
  /** Spreads clients over the servers, and in time. Absent: the others are tried in their order, at once. */
  readonly spread?: { readonly clock: Clock; readonly prng: Prng };
  /** How long one of several may take to begin an answer, before it counts as failed; default: as long as the caller waits. */
  readonly answerMsMax?: number;
}

const learnedMax = 16;
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
    this.#learned = (known?.learned ?? []).filter((url) => serverUrl.test(url)).slice(0, learnedMax);
    this.#current = urls[0] ?? '';
    if (known !== undefined && this.all.includes(known.current)) this.#current = known.current;
  }

  get all(): readonly string[] {
    return [...new Set([...this.#options.urls, ...this.#learned])];
  }

  /** The one that worked last. */
  get current(): string {
    return this.#current;
  }

  get known(): KnownServers {
    return { learned: this.#learned, current: this.#current };
  }

  /** See `ServersOptions`; undefined while there is no other to turn to. */
  get limit(): { readonly clock: Clock; readonly answerMsMax: number } | undefined {
    const { spread, answerMsMax } = this.#options;
    if (spread === undefined || answerMsMax === undefined || this.all.length < 2) return undefined;
    return { clock: spread.clock, answerMsMax };
  }

  /** Calls `listener` after every change of `all` or `current`. The function it returns ends that. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** One that was not tried yet: the one in use if that is so, else any. */
  untried(tried: ReadonlySet<string>): string | undefined {
    if (!tried.has(this.#current)) return this.#current;
    const left = this.all.filter((url) => !tried.has(url));
    return left[this.#options.spread?.prng.below(Math.max(1, left.length)) ?? 0];
  }

  /** Before the next server is tried: clients that lost one together must not fall upon another together. */
  async pause(attempt: number, signal?: AbortSignal): Promise<void> {
    const { spread } = this.#options;
    if (spread !== undefined) await sleep(spread.clock, backoffMs(attempt, pauses, spread.prng), signal);
  }

  worked(url: string): void {
    if (url !== this.#current) this.#change(() => (this.#current = url));
  }

  /** Another is used from now on, if there is one, unless that is so already. */
  failed(url: string): void {
    if (url !== this.#current) return;
    const next = this.untried(new Set([url]));
    if (next !== undefined) this.worked(next);
  }

  /** Takes what a server announced. One reached over TLS is not followed to where there is none: the token would be readable there. */
  learn(announced: string | null, from: string): void {
    if (announced === null) return;
    const learned = announced
      .split(',')
      .map((url) => url.trim())
      .filter((url) => serverUrl.test(url) && (url.startsWith('https:') || !from.startsWith('https:')))
      .sort()
      .slice(0, learnedMax);
    if (learned.join() === this.#learned.join()) return;
    this.#change(() => (this.#learned = learned));
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
