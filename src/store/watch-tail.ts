// The live end of a store's history: watchers read the history at their own pace, sleep when they have seen it all, and are woken by
// commits. Nothing is buffered for a slow watcher.

import { checkWatch } from './check-request.ts';
import { type Key, type Revision, StoreError, type WatchEvent } from './store.ts';

export interface History {
  /** Where others write, too: resolves when `revision()` is as new as the store. Rejects when that cannot be asked. */
  refresh?(): Promise<void>;
  /** The last durable revision. */
  revision(): Revision;
  /**
   * The next events under `prefix` above `after`: whole revisions, bounded in size, at least one revision looked at.
   * `through` is the last revision looked at. Throws `Compacted` when events above `after` are gone.
   */
  read(prefix: string, after: Revision): Read | Promise<Read>;
  /** Lets others run between two reads of a long history. */
  pause(): Promise<void>;
}

export interface Read {
  readonly events: readonly WatchEvent[];
  readonly through: Revision;
}

interface Sleeper {
  readonly prefix: string;
  readonly wake: () => void;
  /** Moves on past commits that touch nothing under `prefix`, so that no compaction can overtake a quiet watcher. */
  seen: Revision;
}

export class WatchTail {
  readonly #history: History;
  readonly #sleepers = new Set<Sleeper>();
  #closed = false;
  /** What ended all watches that had begun before, the last time. */
  #loss: StoreError | undefined;

  constructor(history: History) {
    this.#history = history;
  }

  /** Call after `revision` is durable and readable; `keys` are those changed since the last call. */
  committed(revision: Revision, keys: readonly Key[]): void {
    for (const sleeper of this.#sleepers) {
      if (keys.some((key) => key.startsWith(sleeper.prefix))) sleeper.wake();
      else sleeper.seen = revision;
    }
  }

  /** For when nobody knows what changed. */
  wakeAll(): void {
    for (const sleeper of this.#sleepers) sleeper.wake();
  }

  /** Nobody knows what comes any more: ends every watch that is under way. */
  lose(loss: StoreError): void {
    this.#loss = loss;
    this.wakeAll();
  }

  close(): void {
    this.#closed = true;
    this.wakeAll();
  }

  async *watch(prefix: string, after: Revision, signal: AbortSignal): AsyncGenerator<readonly WatchEvent[], void> {
    this.#assertOpen(prefix);
    const lossBefore = this.#loss;
    if (this.#history.refresh) await this.#history.refresh();
    checkWatch(prefix, after, this.#history.revision());
    let seen = after;
    while (!signal.aborted) {
      this.#assertOpen(prefix);
      if (this.#loss && this.#loss !== lossBefore) throw this.#loss;
      const read = this.#history.read(prefix, seen);
      const { events, through } = read instanceof Promise ? await read : read;
      seen = through;
      if (events.length > 0) yield events;
      if (signal.aborted || this.#closed || this.#loss !== lossBefore) continue;
      if (seen < this.#history.revision()) await this.#history.pause();
      else seen = await this.#sleep(prefix, seen, signal);
    }
  }

  /** Resolves when something may have come, or the watch must end; answers up to where nothing did. */
  #sleep(prefix: string, seen: Revision, signal: AbortSignal): Promise<Revision> {
    return new Promise((resolve) => {
      const wake = (): void => {
        this.#sleepers.delete(sleeper);
        signal.removeEventListener('abort', wake);
        resolve(sleeper.seen);
      };
      const sleeper: Sleeper = { prefix, wake, seen };
      this.#sleepers.add(sleeper);
      signal.addEventListener('abort', wake);
    });
  }

  #assertOpen(prefix: string): void {
    if (this.#closed) throw new StoreError('Closed', `watch of "${prefix}" ended: the store was closed`);
  }
}
