// The live end of a store's history: watchers read the history at their own speed, sleep at its end, and are woken by
// commits. Nothing is buffered for a slow watcher.

import { checkWatch } from './check-request.ts';
import { type Key, type Revision, StoreError, type WatchEvent } from './store.ts';

export interface History {
  /**
   * For stores with other writers: resolves when `revision()` is as new as the store. Rejects when the store cannot be
   * read.
   */
  refresh?(): Promise<void>;
  /** The last durable revision. */
  revision(): Revision;
  /**
   * The next events under `prefix` above `after`: whole revisions, bounded in size, from at least one revision.
   * `through`: the last revision read. Throws `Compacted` when events above `after` are gone.
   */
  read(prefix: string, after: Revision): Read | Promise<Read>;
  /** Yields between two reads of a long history. */
  pause(): Promise<void>;
}

export interface Read {
  readonly events: readonly WatchEvent[];
  readonly through: Revision;
}

interface Sleeper {
  readonly prefix: string;
  readonly wake: () => void;
  /** Advances past commits without keys under `prefix`, so that no compaction can overtake an idle watcher. */
  seen: Revision;
}

export class WatchTail {
  readonly #history: History;
  readonly #sleepers = new Set<Sleeper>();
  #closed = false;
  /** The error that ended all watches, the last time. */
  #loss: StoreError | undefined;

  constructor(history: History) {
    this.#history = history;
  }

  /** Call after `revision` is durable and readable; `keys`: those changed since the last call. */
  committed(revision: Revision, keys: readonly Key[]): void {
    for (const sleeper of this.#sleepers) {
      if (keys.some((key) => key.startsWith(sleeper.prefix))) sleeper.wake();
      else sleeper.seen = revision;
    }
  }

  /** Called when the changed keys are unknown. */
  wakeAll(): void {
    for (const sleeper of this.#sleepers) sleeper.wake();
  }

  /** Later events are unknown: ends every watch in progress. */
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

  /** Resolves when events may have arrived, or the watch must end, with the revision up to which there are none. */
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
