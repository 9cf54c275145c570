// Followed: a value that is read once and then kept up to date while a component uses it. Changes are applied at once and published once per
// frame. When the server is unreachable, the value stays, with the time since when it is stale, and the connection is retried.

import { ApiError } from '../../src/api/errors.ts';
import type { KindsChange } from '../../src/api/client/user-client.ts';
import type { Kind } from '../../src/api/resources/index.ts';
import { waitForAnotherTry } from './another-try.ts';
import { changeStream, type From } from './stream.ts';

export type Standing =
  | { readonly state: 'loading' }
  | { readonly state: 'live' }
  | { readonly state: 'offline'; readonly sinceMs: number; readonly why: string }
  | { readonly state: 'refused'; readonly why: string };

/** A put or a delete of the followed kind. */
export type Change = Extract<KindsChange, { readonly type: 'put' | 'delete' }>;

export interface Source {
  readonly kind: Kind;
  /** Reads the value. Returns the position from which changes follow. */
  load(signal: AbortSignal): Promise<From>;
  apply(change: Change): void;
  clear(): void;
  /** Publishes a new value to its users: once per frame. */
  tell(): void;
}

/** A page that is reopened within this time still has its data. */
const lingerMs = 5_000;
/** For values that may be read but not watched. */
const pollMs = 10_000;

export class Followed {
  readonly #source: Source;
  readonly #listeners = new Set<() => void>();
  #running: AbortController | undefined;
  #lingering: ReturnType<typeof setTimeout> | undefined;
  #frame = 0;
  #waiting: AbortController | undefined;
  standing: Standing = { state: 'loading' };
  /** Of the newest change that is applied. */
  revision = 0;

  constructor(source: Source) {
    this.#source = source;
  }

  readonly follow = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    clearTimeout(this.#lingering);
    if (this.#running === undefined) this.#start();
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size > 0) return;
      this.#lingering = setTimeout(() => this.#stop(), lingerMs);
    };
  };

  readonly retry = (): void => {
    if (this.standing.state === 'refused') this.#start();
    else {
      this.#waiting?.abort();
      changeStream.retry();
    }
  };

  /** Users see it at the next frame. A hidden page has no frames. */
  changed(): void {
    if (this.#frame !== 0) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      this.#tell();
    });
  }

  #tell(): void {
    this.#source.tell();
    for (const listener of this.#listeners) listener();
  }

  #start(): void {
    this.#running?.abort();
    this.#running = new AbortController();
    void this.#run(this.#running.signal);
  }

  #stop(): void {
    this.#running?.abort();
    this.#running = undefined;
    this.revision = 0;
    this.standing = { state: 'loading' };
    this.#source.clear();
    this.#tell();
  }

  async #run(signal: AbortSignal): Promise<void> {
    for (let tries = 0; !signal.aborted; tries++) {
      try {
        const from = await this.#source.load(signal);
        if (signal.aborted) return;
        tries = 0;
        this.revision = Math.max(this.revision, from.revision);
        this.#stand({ state: 'live' });
        await this.#watch(from, signal);
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof ApiError && error.code === 'Compacted') continue; // it is read again
        const why = error instanceof Error ? error.message : String(error);
        if (error instanceof ApiError && (error.code === 'Forbidden' || error.code === 'Unauthenticated'))
          return this.#stand({ state: 'refused', why });
        this.#offline(why);
        await this.#wait((until) => waitForAnotherTry(tries, until), signal);
      }
    }
  }

  async #watch(from: From, signal: AbortSignal): Promise<void> {
    const following = {
      kind: this.#source.kind,
      take: (change: KindsChange) => this.#take(change),
      connected: (why: string | undefined) => (why === undefined ? this.#stand({ state: 'live' }) : this.#offline(why)),
    };
    try {
      await changeStream.follow(following, from, signal);
    } catch (error) {
      if (!(error instanceof ApiError && error.code === 'Forbidden')) throw error;
      await this.#wait((until) => afterMs(pollMs, until), signal);
    }
  }

  #take(change: KindsChange): void {
    if (change.type === 'refused') return;
    this.revision = Math.max(this.revision, change.revision);
    if (change.type !== 'bookmark') this.#source.apply(change);
    this.changed();
  }

  #offline(why: string): void {
    const sinceMs = this.standing.state === 'offline' ? this.standing.sinceMs : Date.now();
    this.#stand({ state: 'offline', sinceMs, why });
  }

  #stand(standing: Standing): void {
    this.standing = standing;
    this.changed();
  }

  async #wait(wait: (until: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void> {
    this.#waiting = new AbortController();
    await wait(AbortSignal.any([signal, this.#waiting.signal]));
  }
}

function afterMs(delayMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, delayMs);
    signal.addEventListener('abort', () => resolve());
  });
}
