// The watch feed: one reader of the store's changes for all watches over HTTP. It passes each change to the watchers of its topic and wakes no
// others. A slow watcher queues a limited number of changes; then it reads the store's history at its own pace until it has caught up.
//
//   behind ── reads the history ──▶ level with the feed ── gets what comes ──▶ too much waits ──┐
//     ▲─────────────────────────────────────────────────────────────────────────────────────────┘

import type { Clock, Timer } from '../../../base/clock.ts';
import { describeError, type Logger } from '../../../base/log.ts';
import { ApiError } from '../../../api/errors.ts';
import type { Kind } from '../../../api/resources/index.ts';
import { decodeRecord } from '../../../core/state/codec.ts';
import { keys, prefixOf } from '../../../core/state/keys.ts';
import { Compacted, type Revision, type Store, StoreError, type WatchEvent } from '../../../store/store.ts';
import type { Sink } from '../connections/sink.ts';

/** What a watcher may want: a kind of resource, perhaps of one project only. */
export interface Topic {
  readonly kind: Kind;
  readonly project: string | undefined;
}

export interface WatchFeedParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Logger;
  /** A revision that the store has reached. */
  readonly revision: () => Revision;
  /** Epoch of the store, as known now. */
  readonly epoch: () => string | undefined;
}

/** Events of whole revisions, and the revision up to which nothing is missing. Without events: a bookmark after a quiet time. */
export interface News {
  readonly events: readonly WatchEvent[];
  readonly revision: Revision;
}

/** Changes that may wait for one watcher. The changes themselves are shared between watchers. */
const waitingEventsMax = 1_000;
/** Never added to. */
const nothingWaits: WatchEvent[] = [];
const idleMs = 10_000;

export class WatchFeed {
  readonly #parts: WatchFeedParts;
  /** Watchers by the prefix of their keys. */
  readonly #subscribers = new Map<string, Set<Subscriber>>();
  /** Every change up to this revision has been passed on. */
  readonly #position = { revision: 0 };
  #running: AbortController | undefined;

  constructor(parts: WatchFeedParts) {
    this.#parts = parts;
  }

  /** Number of watchers now, by kind. */
  counts(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>();
    for (const [prefix, those] of this.#subscribers) {
      const kind = prefix.split('/', 1)[0] ?? '';
      counts.set(kind, (counts.get(kind) ?? 0) + those.size);
    }
    return counts;
  }

  /**
   * Passes the changes under `topics`, which must not overlap, after revision `after` to `sink`, until `signal` aborts. Throws `ApiError`:
   * `Compacted` when the history was removed or the store was restored, `Unavailable` when the store is.
   */
  async follow(topics: readonly Topic[], after: Revision, sink: Sink<News>, signal: AbortSignal): Promise<void> {
    const prefixes = topics.map(
      ({ kind, project }) => `${prefixOf(kind)}${project === undefined ? '' : `${project}/`}`,
    );
    let revision = after;
    try {
      while (!signal.aborted) {
        for await (const news of this.#history(prefixes, revision, signal)) {
          ({ revision } = news);
          if (!sink.take(news)) await sink.ready();
        }
        if (signal.aborted) return;
        if (revision < this.#level()) continue; // more has arrived while the sink took the last piece
        revision = await this.#levelWith({ prefixes, from: revision, sink }, signal);
      }
    } catch (error) {
      throw toApiError(error);
    }
  }

  /** Passes on new changes, until they are more than the sink takes. Returns the last revision passed on. */
  async #levelWith(wish: Wish, signal: AbortSignal): Promise<Revision> {
    const subscriber = new Subscriber(wish, { clock: this.#parts.clock, feed: this.#position });
    this.#join(subscriber);
    const leave = (): void => subscriber.leave();
    signal.addEventListener('abort', leave, { once: true });
    try {
      return await subscriber.over;
    } finally {
      signal.removeEventListener('abort', leave);
      this.#leave(subscriber);
    }
  }

  /** The revision at which the feed is, or would begin. */
  #level(): Revision {
    return this.#running ? this.#position.revision : this.#parts.revision();
  }

  /** Reads the history from `after` to the revision of the feed. */
  async *#history(prefixes: readonly string[], after: Revision, signal: AbortSignal): AsyncGenerator<News, void> {
    if (after >= this.#level()) return;
    const epoch = this.#parts.epoch();
    const reading = new AbortController();
    const stop = (): void => reading.abort();
    signal.addEventListener('abort', stop, { once: true });
    try {
      for await (const batch of this.#parts.store.watch('', after, reading.signal)) {
        assertSameEpoch(batch, epoch);
        const revision = batch.at(-1)?.revision ?? after;
        yield { events: batch.filter(({ key }) => prefixes.some((prefix) => key.startsWith(prefix))), revision };
        if (revision >= this.#level()) return;
      }
    } finally {
      signal.removeEventListener('abort', stop);
      stop();
    }
  }

  #join(subscriber: Subscriber): void {
    for (const prefix of subscriber.prefixes) {
      const those = this.#subscribers.get(prefix);
      if (those) those.add(subscriber);
      else this.#subscribers.set(prefix, new Set([subscriber]));
    }
    if (this.#running) return;
    this.#position.revision = Math.min(subscriber.from, this.#parts.revision());
    this.#running = new AbortController();
    void this.#run(this.#running);
  }

  #leave(subscriber: Subscriber): void {
    let left = false;
    for (const prefix of subscriber.prefixes) {
      const those = this.#subscribers.get(prefix);
      if (!those?.delete(subscriber)) continue; // its feed has ended
      left = true;
      if (those.size === 0) this.#subscribers.delete(prefix);
    }
    if (!left || this.#subscribers.size > 0) return;
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
      const all = new Set([...this.#subscribers.values()].flatMap((those) => [...those]));
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
    for (const subscriber of told) subscriber.tell();
  }
}

const none: readonly Subscriber[] = [];

interface Wish {
  readonly prefixes: readonly string[];
  /** Every change up to this revision has been passed on. */
  readonly from: Revision;
  readonly sink: Sink<News>;
}

/** A watcher that is level with the feed: it receives changes in the same turn, and waiting costs no promise. */
class Subscriber {
  readonly prefixes: readonly string[];
  readonly from: Revision;
  readonly #sink: Sink<News>;
  readonly #clock: Clock;
  readonly #feed: { readonly revision: Revision };
  readonly #over = Promise.withResolvers<Revision>();
  #seen: Revision;
  #waiting = nothingWaits;
  #overflowed = false;
  /** The sink takes no more for now. */
  #busy = false;
  #done = false;
  /** The revision and the error with which the feed ended; a later feed is another one. */
  #ended: { readonly at: Revision; readonly error: unknown } | undefined;
  #toldAtMs: number;
  #timer: Timer | undefined;

  constructor({ prefixes, from, sink }: Wish, parts: { clock: Clock; feed: { readonly revision: Revision } }) {
    this.prefixes = prefixes;
    this.from = from;
    this.#seen = from;
    this.#sink = sink;
    this.#clock = parts.clock;
    this.#feed = parts.feed;
    this.#toldAtMs = this.#clock.monotonicMs();
    this.#sayNowAndThen(idleMs);
  }

  /** Resolves with the last revision passed on, when too much was waiting or the watcher has left. Rejects with the error that ended the feed. */
  get over(): Promise<Revision> {
    return this.#over.promise;
  }

  put(event: WatchEvent): void {
    if (event.revision <= this.from || this.#overflowed) return;
    if (this.#waiting.length === 0) {
      this.#waiting = [event]; // `push` allocates room for seventeen, and nearly always one comes
      return;
    }
    if (this.#waiting.length < waitingEventsMax) return void this.#waiting.push(event);
    this.#overflowed = true;
    // The queue has only a part of this revision; the history has all of it.
    while (this.#waiting.at(-1)?.revision === event.revision) this.#waiting.pop();
  }

  /** Passes on what waits, as far as the sink takes it. */
  tell(): void {
    if (this.#busy || this.#done) return;
    if (this.#waiting.length > 0) {
      const events = this.#waiting;
      this.#waiting = nothingWaits;
      const level = this.#ended?.at ?? this.#feed.revision;
      this.#seen = this.#overflowed ? (events.at(-1)?.revision ?? this.#seen) : Math.max(level, this.#seen);
      this.#take(events);
    }
    if (this.#busy || !(this.#ended || this.#overflowed)) return;
    if (this.#ended) this.#over.reject(this.#ended.error);
    this.leave();
  }

  /** The feed has ended: what waits is still passed on. */
  end(error: unknown): void {
    this.#ended ??= { at: this.#feed.revision, error };
    this.tell();
  }

  /** Nothing is passed on from now on. */
  leave(): void {
    this.#done = true;
    this.#timer?.cancel();
    this.#over.resolve(this.#seen);
  }

  #take(events: readonly WatchEvent[]): void {
    this.#toldAtMs = this.#clock.monotonicMs();
    try {
      if (this.#sink.take({ events, revision: this.#seen })) return;
    } catch (error) {
      this.#ended ??= { at: this.#feed.revision, error }; // a failing sink harms no other
      this.#waiting = nothingWaits;
      return;
    }
    this.#busy = true;
    void this.#sink.ready().then(() => {
      this.#busy = false;
      this.tell();
    });
  }

  /** Sends a bookmark after a quiet time. One timer serves many changes. */
  #sayNowAndThen(delayMs: number): void {
    const look = (): void => {
      const leftMs = this.#toldAtMs + idleMs - this.#clock.monotonicMs();
      if (leftMs <= 0 && !this.#busy) {
        this.#seen = Math.max(this.#feed.revision, this.#seen);
        this.#take([]);
        this.tell();
      }
      if (!this.#done) this.#sayNowAndThen(leftMs > 0 ? leftMs : idleMs);
    };
    this.#timer = this.#clock.setTimer(delayMs, look, { background: true });
  }
}

/** Revisions from before a restore are of another epoch: no watch may continue from there. */
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
