// The one reader of a log with several writing processes: it follows the log for all watchers of this process and keeps its newest part in
// memory. It never writes, and passes everything on in order.
//
//   own commits ─────┐ next in line: taken as they are
//   "there is more" ─┼▶ read the log on, page by page ──▶ recent history ──▶ watchers
//   a look now and then ┘                                  (older: read from the store)

import type { Clock, Timer } from '../base/clock.ts';
import { describeError } from '../base/log.ts';
import { system } from '../base/system.ts';
import { RecentHistory } from './recent-history.ts';
import { Compacted, type Revision, StoreError, type WatchEvent } from './store.ts';
import { type Read, WatchTail } from './watch-tail.ts';

/** One commit in the log. */
export interface LoggedCommit {
  readonly revision: Revision;
  readonly events: readonly WatchEvent[];
}

/** A piece of the log, and the state of the store when it was read. */
export interface LogPage {
  /**
   * In order, without gaps; the first follows `after`. Empty at the end, and when the revision after `after` is
   * compacted.
   */
  readonly commits: readonly LoggedCommit[];
  /** The last revision of the store. */
  readonly revision: Revision;
  /** The first revision with events. */
  readonly compacted: Revision;
}

export interface SharedLogOptions {
  /**
   * The commits after `after`, as many as fit a page of a few MiB. Rejects with `StoreError`; must end in bounded time.
   */
  readonly read: (after: Revision) => Promise<LogPage>;
  /** The revision at which the store was opened. */
  readonly revision: Revision;
  readonly compacted: Revision;
  readonly clock: Clock;
  /** The error for watchers when the store is lost. */
  readonly onLost?: (error: StoreError) => void;
}

/** Some thousands of creates: far more than any following watcher lags. */
const recentBytesMax = 16 * 1024 * 1024;
/** Replaces lost notifications, and checks that the store is still available. */
const lookEveryMs = 1_000;
/**
 * How long reading the log is retried at most: an election, or a restart. Requests are retried for longer; followers
 * learn by then that the store is unavailable, and the server is not ready.
 */
export const logPatienceMsMax = 3_000;

export class SharedLog {
  readonly #options: SharedLogOptions;
  readonly #recent = new RecentHistory(recentBytesMax);
  readonly #tail = new WatchTail({
    refresh: () => this.refresh(),
    revision: () => this.revision,
    read: (prefix, after) => this.#readFor(prefix, after),
    pause: () => new Promise((resolve) => system.afterTurn(resolve)),
  });
  /** Everything up to here has been passed on. */
  revision: Revision;
  compacted: Revision;
  /** The store is known to have reached this. */
  #heardOf: Revision;
  #reading: Promise<void> | null = null;
  #nextReading: Promise<void> | null = null;
  #timer: Timer | undefined;
  #closed = false;

  constructor(options: SharedLogOptions) {
    this.#options = options;
    this.revision = options.revision;
    this.compacted = options.compacted;
    this.#heardOf = options.revision;
    this.#recent.reset(options.revision);
    this.#lookLater();
  }

  watch(prefix: string, after: Revision, signal: AbortSignal): AsyncIterable<readonly WatchEvent[]> {
    return this.#tail.watch(prefix, after, signal);
  }

  /**
   * Own commits: passed on when no unknown revision lies before them, and after their requests were answered; they need
   * not be read from the store.
   */
  committed(commits: readonly LoggedCommit[]): void {
    system.afterTurn(() => {
      if (this.#closed) return;
      for (const commit of commits) {
        if (commit.revision === this.revision + 1) this.#take(commit);
        else if (commit.revision > this.revision) this.heard(commit.revision);
      }
    });
  }

  /** Another process reports that the store has reached `revision`. */
  heard(revision: Revision): void {
    this.#heardOf = Math.max(this.#heardOf, revision);
    if (this.#heardOf > this.revision && !this.#reading) this.refresh().catch(() => {}); // `lose` informs the watchers
  }

  /**
   * Resolves when everything in the store at the time of the call has been passed on. Concurrent callers share one
   * read.
   */
  refresh(): Promise<void> {
    if (!this.#reading) return this.#startReading();
    this.#nextReading ??= this.#reading.catch(() => {}).then(() => this.#startReading());
    return this.#nextReading;
  }

  /** Ends every watch with `error`. Later watches read from the store. */
  lose(error: StoreError): void {
    this.#options.onLost?.(error);
    this.#tail.lose(error);
  }

  /** Resolves when it has stopped reading. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#timer?.cancel();
    this.#tail.close();
    await this.#reading?.catch(() => {});
  }

  #startReading(): Promise<void> {
    this.#nextReading = null;
    const reading = this.#readOn().finally(() => {
      this.#reading = null;
      if (this.#heardOf > this.revision && !this.#closed) this.heard(this.#heardOf);
    });
    this.#reading = reading;
    reading.catch(() => {}); // reported to the callers, and to watchers
    return reading;
  }

  async #readOn(): Promise<void> {
    if (this.#closed) throw new StoreError('Closed', 'reading the log ended: the store was closed');
    try {
      for (;;) {
        const { commits, revision, compacted } = await this.#options.read(this.revision);
        this.compacted = Math.max(this.compacted, compacted);
        for (const commit of commits) if (commit.revision === this.revision + 1) this.#take(commit);
        this.#heardOf = Math.max(this.#heardOf, revision);
        if (this.revision >= revision) return;
        if (this.revision + 1 < this.compacted) this.#skip(revision);
      }
    } catch (error) {
      this.#heardOf = this.revision; // the next look starts again
      const lost =
        error instanceof StoreError
          ? error
          : new StoreError('Unavailable', `the log cannot be read: ${describeError(error)}`, { cause: error });
      if (!this.#closed) this.lose(lost);
      throw lost;
    }
  }

  #take({ revision, events }: LoggedCommit): void {
    this.revision = revision;
    this.#heardOf = Math.max(this.#heardOf, revision);
    this.#recent.append(events);
    this.#tail.committed(
      revision,
      events.map(({ key }) => key),
    );
  }

  /** The revisions in between are compacted: watchers there get `Compacted`. */
  #skip(revision: Revision): void {
    this.revision = revision;
    this.#recent.reset(revision);
    this.#tail.wakeAll();
  }

  async #readFor(prefix: string, after: Revision): Promise<Read> {
    if (after + 1 < this.compacted) throw new Compacted(this.compacted);
    if (after >= this.revision) return { events: [], through: after };
    const recent = this.#recent.read(prefix, after);
    if (recent) return recent;
    const known = this.revision;
    const { commits, compacted } = await this.#options.read(after);
    this.compacted = Math.max(this.compacted, compacted);
    const events: WatchEvent[] = [];
    let through = after;
    for (const commit of commits) {
      if (commit.revision !== through + 1 || commit.revision > known) break;
      through = commit.revision;
      for (const event of commit.events) if (event.key.startsWith(prefix)) events.push(event);
    }
    if (through === after) throw new Compacted(Math.max(compacted, after + 2));
    return { events, through };
  }

  #lookLater(): void {
    this.#timer = this.#options.clock.setTimer(
      lookEveryMs,
      () => {
        const look = this.#reading ?? this.refresh();
        void look.catch(() => {}).then(() => this.#closed || this.#lookLater());
      },
      { background: true },
    );
  }
}
