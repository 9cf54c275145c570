// One reader of the store's changes for all who watch over HTTP: it hands each change to those who may want it, and wakes nobody else.
// Who is slow keeps no more than so many changes here; then it reads the store's history at its own pace, until it has caught up.
//
//   behind ── reads the history ──▶ level with the feed ── gets what comes ──▶ too much waits ──┐
//     ▲─────────────────────────────────────────────────────────────────────────────────────────┘

import type { Clock } from '../../base/clock.ts';
import { describeError, type Logger } from '../../base/log.ts';
import { ApiError } from '../../api/errors.ts';
import type { Kind } from '../../api/resources/index.ts';
import { decodeRecord } from '../../core/state/codec.ts';
import { keys, prefixOf } from '../../core/state/keys.ts';
import { Compacted, type Revision, type Store, StoreError, type WatchEvent } from '../../store/store.ts';

/** What a watcher may want: a kind of resource, perhaps of one project only. */
export interface Topic {
  readonly kind: Kind;
  readonly project: string | undefined;
}

export interface WatchFeedParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Logger;
  /** A revision that the store has come to. */
  readonly revision: () => Revision;
  /** Of the store, as it is known now. */
  readonly epoch: () => string | undefined;
}

/** Events of whole revisions, and up to where nothing is missing. Without events: nothing has come for a while. */
export interface News {
  readonly events: readonly WatchEvent[];
  readonly revision: Revision;
}

/** How many changes may wait for one watcher; they are shared with others who want them. */
const waitingEventsMax = 1_000;
const idleMs = 10_000;

export class WatchFeed {
  readonly #parts: WatchFeedParts;
  /** By the prefix of the keys that they want. */
  readonly #subscribers = new Map<string, Set<Subscriber>>();
  /** Everything up to here has been handed out. */
  readonly #position = { revision: 0 };
  #running: AbortController | undefined;

  constructor(parts: WatchFeedParts) {
    this.#parts = parts;
  }

  /**
   * What happens under `topic` after `after`, for as long as `signal` lets it. Throws `ApiError`: `Compacted` when history is gone or the
   * store was restored, `Unavailable` when the store is.
   */
  async *watch(topic: Topic, after: Revision, signal: AbortSignal): AsyncGenerator<News, void> {
    const prefix = `${prefixOf(topic.kind)}${topic.project === undefined ? '' : `${topic.project}/`}`;
    let revision = after;
    try {
      while (!signal.aborted) {
        for await (const news of this.#history(prefix, revision, signal)) {
          ({ revision } = news);
          yield news;
        }
        if (signal.aborted) return;
        if (revision < this.#level()) continue; // more has come while the last piece was taken
        const subscriber = new Subscriber({ prefix, from: revision, clock: this.#parts.clock, feed: this.#position });
        this.#join(subscriber);
        const leave = (): void => this.#leave(subscriber);
        signal.addEventListener('abort', leave, { once: true });
        try {
          for await (const news of subscriber.news()) {
            ({ revision } = news);
            yield news;
          }
        } finally {
          signal.removeEventListener('abort', leave);
          leave();
        }
      }
    } catch (error) {
      throw toApiError(error);
    }
  }

  /** Where the feed is, or would begin. */
  #level(): Revision {
    return this.#running ? this.#position.revision : this.#parts.revision();
  }

  /** From `after` to where the feed is. */
  async *#history(prefix: string, after: Revision, signal: AbortSignal): AsyncGenerator<News, void> {
    if (after >= this.#level()) return;
    const epoch = this.#parts.epoch();
    const reading = new AbortController();
    const stop = (): void => reading.abort();
    signal.addEventListener('abort', stop, { once: true });
    try {
      for await (const batch of this.#parts.store.watch('', after, reading.signal)) {
        assertSameEpoch(batch, epoch);
        const revision = batch.at(-1)?.revision ?? after;
        yield { events: batch.filter(({ key }) => key.startsWith(prefix)), revision };
        if (revision >= this.#level()) return;
      }
    } finally {
      signal.removeEventListener('abort', stop);
      stop();
    }
  }

  #join(subscriber: Subscriber): void {
    const those = this.#subscribers.get(subscriber.prefix);
    if (those) those.add(subscriber);
    else this.#subscribers.set(subscriber.prefix, new Set([subscriber]));
    if (this.#running) return;
    this.#position.revision = Math.min(subscriber.from, this.#parts.revision());
    this.#running = new AbortController();
    void this.#run(this.#running);
  }

  #leave(subscriber: Subscriber): void {
    subscriber.end();
    const those = this.#subscribers.get(subscriber.prefix);
    if (!those?.delete(subscriber) || those.size > 0) return;
    this.#subscribers.delete(subscriber.prefix);
    if (this.#subscribers.size > 0) return;
    this.#running?.abort();
    this.#running = undefined;
  }

  async #run(running: AbortController): Promise<void> {
    const epoch = this.#parts.epoch();
    try {
      for await (const batch of this.#parts.store.watch('', this.#position.revision, running.signal)) {
        if (running.signal.aborted) return;
        assertSameEpoch(batch, epoch);
        this.#handOut(batch);
      }
    } catch (error) {
      if (running.signal.aborted) return;
      this.#parts.log.debug('the feed of changes ended', { error: describeError(error) });
      this.#running = undefined;
      const all = [...this.#subscribers.values()].flatMap((those) => [...those]);
      this.#subscribers.clear();
      for (const subscriber of all) subscriber.end(error);
    }
  }

  #handOut(batch: readonly WatchEvent[]): void {
    const told = new Set<Subscriber>();
    for (const event of batch) {
      const { key } = event;
      for (let end = key.indexOf('/') + 1; end > 0; end = key.indexOf('/', end) + 1) {
        for (const subscriber of this.#subscribers.get(key.slice(0, end)) ?? none) {
          subscriber.put(event);
          told.add(subscriber);
        }
      }
    }
    this.#position.revision = batch.at(-1)?.revision ?? this.#position.revision;
    for (const subscriber of told) subscriber.wake();
  }
}

const none: readonly Subscriber[] = [];

/** A watcher that is level with the feed. */
class Subscriber {
  readonly prefix: string;
  /** It has seen everything up to here. */
  readonly from: Revision;
  readonly #clock: Clock;
  readonly #feed: { readonly revision: Revision };
  #waiting: WatchEvent[] = [];
  #overflowed = false;
  #over = false;
  /** Where the feed was when it ended: later it is another's. */
  #endedAt: Revision | undefined;
  #error: Error | undefined;
  #wake: (() => void) | undefined;

  constructor(options: { prefix: string; from: Revision; clock: Clock; feed: { readonly revision: Revision } }) {
    this.prefix = options.prefix;
    this.from = options.from;
    this.#clock = options.clock;
    this.#feed = options.feed;
  }

  put(event: WatchEvent): void {
    if (event.revision <= this.from || this.#overflowed) return;
    if (this.#waiting.length < waitingEventsMax) return void this.#waiting.push(event);
    this.#overflowed = true;
    // What waits of this revision is not whole; the history has it.
    while (this.#waiting.at(-1)?.revision === event.revision) this.#waiting.pop();
  }

  wake(): void {
    this.#wake?.();
  }

  end(error?: unknown): void {
    this.#over = true;
    this.#endedAt ??= this.#feed.revision;
    this.#error = error === undefined || error instanceof Error ? error : new Error(describeError(error));
    this.wake();
  }

  /** Ends when it is over, or when too much was waiting. */
  async *news(): AsyncGenerator<News, void> {
    let seen = this.from;
    for (;;) {
      const events = this.#waiting.splice(0);
      if (events.length > 0) {
        const level = this.#endedAt ?? this.#feed.revision;
        seen = this.#overflowed ? (events.at(-1)?.revision ?? seen) : Math.max(level, seen);
        yield { events, revision: seen };
      } else if (this.#over) {
        if (this.#error !== undefined) throw this.#error;
        return;
      } else if (this.#overflowed) return;
      else if (await this.#nothingComes()) {
        seen = Math.max(this.#feed.revision, seen);
        yield { events: [], revision: seen };
      }
    }
  }

  /** Resolves when something has come or it is over: false; or when nothing has come for a while. */
  #nothingComes(): Promise<boolean> {
    return new Promise((resolve) => {
      const finish = (idle: boolean) => (): void => {
        timer.cancel();
        this.#wake = undefined;
        resolve(idle);
      };
      const timer = this.#clock.setTimer(idleMs, finish(true), { background: true });
      this.#wake = finish(false);
    });
  }
}

/** What came before a restore is of another epoch: nobody may go on from there. */
function assertSameEpoch(batch: readonly WatchEvent[], epoch: string | undefined): void {
  for (const { key, value } of batch) {
    if (key !== keys.cluster || value === null) continue;
    const record = decodeRecord(key, value);
    if (record.kind === 'cluster' && record.epoch !== epoch && epoch !== undefined)
      throw new ApiError('Compacted', 'the store was restored from a backup; list again');
  }
}

function toApiError(error: unknown): unknown {
  if (error instanceof Compacted) return new ApiError('Compacted', error.message, { cause: error });
  if (error instanceof StoreError)
    return new ApiError('Unavailable', 'the store cannot be watched now; try again', { cause: error });
  return error;
}
