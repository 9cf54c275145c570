// The one reader of a log that other processes write, too: it follows the log for all watchers of this process and keeps its newest
// part in memory. It never writes, and hands nothing on before all that came before it.
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

/** One commit, as the log has it. */
export interface LoggedCommit {
  readonly revision: Revision;
  readonly events: readonly WatchEvent[];
}

/** A piece of the log, and what the store said of itself when that was read. */
export interface LogPage {
  /** In order, without gaps; the first follows `after`. Empty at the end, and when what follows `after` is forgotten. */
  readonly commits: readonly LoggedCommit[];
  /** The last revision of the store. */
  readonly revision: Revision;
  /** The first revision whose events are still there. */
  readonly compacted: Revision;
}

export interface SharedLogOptions {
  /** The commits after `after`, as many as fit a page of a few MiB. Rejects with `StoreError`; must not take for ever. */
  readonly read: (after: Revision) => Promise<LogPage>;
  /** Where the store was when it was opened. */
  readonly revision: Revision;
  readonly compacted: Revision;
  readonly clock: Clock;
  /** What watchers are told when the store is gone. */
  readonly onLost?: (error: StoreError) => void;
}

/** Some thousands of creates: far more than any watcher that follows is behind. */
const recentBytesMax = 16 * 1024 * 1024;
/** For what a lost notice would have told, and to see that the store is still there. */
const lookEveryMs = 1_000;
/**
 * How long reading the log may be tried anew at most: an election, or a restart. Requests are tried for longer; whoever follows is told by
 * then that the store is away, and is not ready.
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
  /** Everything up to here has been handed on. */
  revision: Revision;
  compacted: Revision;
  /** The store is known to be here. */
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
   * What this process has just committed: handed on when nothing lies before it that is not known yet, and after who committed it has been
   * told; it need not be looked at then.
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

  /** Another process says that the store has come to `revision`. */
  heard(revision: Revision): void {
    this.#heardOf = Math.max(this.#heardOf, revision);
    if (this.#heardOf > this.revision && !this.#reading) this.refresh().catch(() => {}); // watchers are told by `lose`
  }

  /** Resolves when everything that was in the store at the time of the call has been handed on. Those who wait share one reading. */
  refresh(): Promise<void> {
    if (!this.#reading) return this.#startReading();
    this.#nextReading ??= this.#reading.catch(() => {}).then(() => this.#startReading());
    return this.#nextReading;
  }

  /** Ends every watch with `error`. Those that begin afterwards ask the store. */
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
    reading.catch(() => {}); // told to whoever asked, and to watchers
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
      this.#heardOf = this.revision; // the next look begins anew
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

  /** What lies between is forgotten: who watches from there is told so. */
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
