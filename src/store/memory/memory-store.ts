// A store in memory, for tests and the simulator: the same calls in the same order give the same answers in the same
// microtasks. Its content ends with the process; it must never use timers or the machine.

import { checkCommit, checkCompact, checkKey, checkList, endOfPrefix, startOfList } from '../check-request.ts';
import {
  type CommitResult,
  Compacted,
  type Condition,
  type Entry,
  type Key,
  type Listed,
  type ListOptions,
  type Revision,
  type Store,
  StoreError,
  type WatchEvent,
  type Write,
} from '../store.ts';
import { WatchTail } from '../watch-tail.ts';

/** A watcher gets at most this many events at once, or one whole revision. */
const batchEventsMax = 1000;

export function createMemoryStore(): Store {
  return new MemoryStore();
}

class MemoryStore implements Store {
  readonly #entries = new Map<Key, Entry>();
  /** The keys of `#entries`, in byte order. */
  readonly #keys: Key[] = [];
  /** The events of revision `#compactedBefore` and of each later one, in order. */
  #log: (readonly WatchEvent[])[] = [];
  #compactedBefore: Revision = 1;
  #revision: Revision = 0;
  #closed = false;
  readonly #tail = new WatchTail({
    revision: () => this.#revision,
    read: (prefix, after) => this.#read(prefix, after),
    pause: () => Promise.resolve(),
  });

  async get(key: Key): Promise<Entry | null> {
    checkKey(key);
    this.#assertOpen(`get of "${key}"`);
    return this.#entries.get(key) ?? null;
  }

  async list(prefix: string, options: ListOptions = {}): Promise<Listed> {
    checkList(prefix, options);
    this.#assertOpen(`list of "${prefix}"`);
    const start = startOfList(prefix, options);
    const end = endOfPrefix(prefix);
    const limit = options.limit ?? Number.POSITIVE_INFINITY;
    const entries: Entry[] = [];
    for (let i = this.#firstKeyFrom(start); i < this.#keys.length && entries.length < limit; i++) {
      const key = this.#keys[i];
      if (key === undefined || key >= end) break;
      const entry = this.#entries.get(key);
      if (entry) entries.push(entry);
    }
    return { entries, revision: this.#revision };
  }

  async commit(conditions: readonly Condition[], writes: readonly Write[]): Promise<CommitResult> {
    checkCommit(conditions, writes);
    this.#assertOpen('commit');
    for (const { key, ifRevision } of conditions) {
      if ((this.#entries.get(key)?.revision ?? 0) !== ifRevision) return { ok: false, key };
    }
    const revision = this.#revision + 1;
    const events: WatchEvent[] = [];
    for (const { key, value } of writes) {
      if (value !== null) {
        const entry = { key, value: new Uint8Array(value), revision };
        this.#put(entry);
        events.push(entry);
      } else if (this.#remove(key)) events.push({ key, value: null, revision });
    }
    if (events.length > 0) {
      this.#log.push(events);
      this.#revision = revision;
      this.#tail.committed(
        revision,
        events.map((event) => event.key),
      );
    }
    return { ok: true, revision: this.#revision };
  }

  watch(prefix: string, after: Revision, signal: AbortSignal): AsyncIterable<readonly WatchEvent[]> {
    return this.#tail.watch(prefix, after, signal);
  }

  async compact(before: Revision): Promise<void> {
    this.#assertOpen('compaction');
    checkCompact(before, this.#revision);
    if (before <= this.#compactedBefore) return;
    this.#log = this.#log.slice(before - this.#compactedBefore);
    this.#compactedBefore = before;
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#tail.close();
  }

  #read(prefix: string, after: Revision): { events: WatchEvent[]; through: Revision } {
    if (after + 1 < this.#compactedBefore) throw new Compacted(this.#compactedBefore);
    const events: WatchEvent[] = [];
    let through = after;
    while (through < this.#revision && events.length < batchEventsMax) {
      for (const event of this.#log[through + 1 - this.#compactedBefore] ?? [])
        if (event.key.startsWith(prefix)) events.push(event);
      through++;
    }
    return { events, through };
  }

  #put(entry: Entry): void {
    if (!this.#entries.has(entry.key)) this.#keys.splice(this.#firstKeyFrom(entry.key), 0, entry.key);
    this.#entries.set(entry.key, entry);
  }

  #remove(key: Key): boolean {
    if (!this.#entries.delete(key)) return false;
    this.#keys.splice(this.#firstKeyFrom(key), 1);
    return true;
  }

  /** The position of the first key that is not below `start`. */
  #firstKeyFrom(start: string): number {
    let low = 0;
    let high = this.#keys.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#keys[middle] ?? '') < start) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #assertOpen(attempted: string): void {
    if (this.#closed) throw new StoreError('Closed', `${attempted} refused: the store was closed`);
  }
}
