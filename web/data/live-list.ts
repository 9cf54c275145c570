// LiveList: all resources of one kind that the user may see, kept as the server has them. It lists once and then watches; a change is
// applied at once and told once per frame. When the server is gone it keeps what it has, says since when, and tries again.

import { ApiError } from '../../src/api/errors.ts';
import type { Kind, ResourceByKind } from '../../src/api/resources/index.ts';
import type { WatchedChange } from '../../src/api/client/user-client.ts';
import { client } from './client.ts';

export type Standing =
  | { readonly state: 'loading' }
  | { readonly state: 'live' }
  | { readonly state: 'offline'; readonly sinceMs: number; readonly why: string }
  | { readonly state: 'refused'; readonly why: string };

export interface Seen<T> {
  readonly items: readonly T[];
  /** Of the newest change that is in `items`. */
  readonly revision: number;
  readonly standing: Standing;
}

const pageSize = 5_000;
const firstDelayMs = 500;
const delayMsMax = 30_000;
/** A page that is left and come back to within this time finds its list as it was. */
const lingerMs = 5_000;

export class LiveList<K extends Kind> {
  readonly #kind: K;
  readonly #items = new Map<string, ResourceByKind[K]>();
  readonly #listeners = new Set<() => void>();
  #seen: Seen<ResourceByKind[K]> = { items: [], revision: 0, standing: { state: 'loading' } };
  #revision = 0;
  #standing: Standing = { state: 'loading' };
  #running: AbortController | undefined;
  #lingering: ReturnType<typeof setTimeout> | undefined;
  #frame = 0;
  #retry: (() => void) | undefined;

  constructor(kind: K) {
    this.#kind = kind;
  }

  readonly seen = (): Seen<ResourceByKind[K]> => this.#seen;

  readonly follow = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    clearTimeout(this.#lingering);
    if (this.#running === undefined) void this.#run((this.#running = new AbortController()).signal);
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size > 0) return;
      this.#lingering = setTimeout(() => this.#stop(), lingerMs);
    };
  };

  #stop(): void {
    this.#running?.abort();
    this.#running = undefined;
    this.#items.clear();
    this.#revision = 0;
    this.#standing = { state: 'loading' };
    this.#tell();
  }

  async #run(signal: AbortSignal): Promise<void> {
    let delayMs = firstDelayMs;
    while (!signal.aborted) {
      try {
        await this.#followOnce(signal, () => (delayMs = firstDelayMs));
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof ApiError && (error.code === 'Forbidden' || error.code === 'Unauthenticated')) {
          this.#stand({ state: 'refused', why: error.message });
          return;
        }
        const sinceMs = this.#standing.state === 'offline' ? this.#standing.sinceMs : Date.now();
        this.#stand({ state: 'offline', sinceMs, why: error instanceof Error ? error.message : String(error) });
        await this.#wait(delayMs * (0.5 + Math.random() / 2), signal);
        delayMs = Math.min(delayMs * 2, delayMsMax);
      }
    }
  }

  /** Until the watch ends. */
  async #followOnce(signal: AbortSignal, onLive: () => void): Promise<void> {
    const { revision, epoch } = await this.#listAll(signal);
    onLive();
    this.#stand({ state: 'live' });
    const changes = client.watch(this.#kind, { revision, ...(epoch === undefined ? {} : { epoch }) }, signal);
    for await (const change of changes) this.#apply(change);
    throw new Error('the server ended the stream');
  }

  async #listAll(signal: AbortSignal): Promise<{ readonly revision: number; readonly epoch?: string | undefined }> {
    const found = new Map<string, ResourceByKind[K]>();
    let page = await client.list(this.#kind, { limit: pageSize });
    const { revision, epoch } = page; // later pages may be newer: the watch repeats what they have already
    for (;;) {
      for (const item of page.items) found.set(keyOf(item), item);
      if (page.continue === undefined || signal.aborted) break;
      page = await client.list(this.#kind, { limit: pageSize, continue: page.continue });
    }
    if (signal.aborted) throw new Error('stopped');
    this.#items.clear();
    // The oldest first, as later ones are added at the end: a list by age is then sorted already.
    const byAge = [...found].sort(([, a], [, b]) => a.metadata.createdAtMs - b.metadata.createdAtMs);
    for (const [key, item] of byAge) this.#items.set(key, item);
    this.#revision = revision;
    return { revision, epoch };
  }

  #apply(change: WatchedChange<ResourceByKind[K]>): void {
    this.#revision = Math.max(this.#revision, change.revision);
    if (change.type === 'put') {
      const key = keyOf(change.resource);
      const known = this.#items.get(key);
      if (known === undefined || known.metadata.revision < change.resource.metadata.revision)
        this.#items.set(key, change.resource);
    } else if (change.type === 'delete') this.#items.delete(keyOf(change.resource));
    this.#tellSoon();
  }

  #stand(standing: Standing): void {
    this.#standing = standing;
    this.#tellSoon();
  }

  #tellSoon(): void {
    if (this.#frame !== 0) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      this.#tell();
    });
  }

  #tell(): void {
    this.#seen = { items: [...this.#items.values()], revision: this.#revision, standing: this.#standing };
    for (const listener of this.#listeners) listener();
  }

  /** Ends at once when the page is looked at again, or the network is back. */
  async #wait(delayMs: number, signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, delayMs);
    const again = (): void => {
      if (document.visibilityState === 'visible') resolve();
    };
    document.addEventListener('visibilitychange', again);
    window.addEventListener('online', again);
    signal.addEventListener('abort', () => resolve());
    this.#retry = resolve;
    await promise;
    clearTimeout(timer);
    document.removeEventListener('visibilitychange', again);
    window.removeEventListener('online', again);
    this.#retry = undefined;
  }

  /** Does not wait any longer. */
  retry(): void {
    if (this.#standing.state === 'refused') {
      this.#running = undefined;
      void this.#run((this.#running = new AbortController()).signal);
    } else this.#retry?.();
  }
}

function keyOf({ metadata }: { readonly metadata: { readonly name: string; readonly project: string } }): string {
  return `${metadata.project}/${metadata.name}`;
}

const lists = new Map<Kind, LiveList<Kind>>();

/** One for all pages. */
export function liveList<K extends Kind>(kind: K): LiveList<K> {
  let list = lists.get(kind);
  if (list === undefined) lists.set(kind, (list = new LiveList<Kind>(kind)));
  return list as unknown as LiveList<K>; // it is kept by its kind
}
