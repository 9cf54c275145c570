// The newest part of a store's history, kept in memory so that watchers that follow closely need no disk. All of them
// get the same event objects, so a watcher may store derived data beside an event for the others.

import type { Revision, WatchEvent } from './store.ts';

/** A watcher gets at most this many events at once, or one whole revision. */
const eventsPerReadMax = 1_000;

export class RecentHistory {
  readonly #bytesMax: number;
  /** The events of revision `#first` and of each later one, in order. */
  #revisions: (readonly WatchEvent[])[] = [];
  #first: Revision = 1;
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Forgets everything; the next revision is `revision + 1`. */
  reset(revision: Revision): void {
    this.#revisions = [];
    this.#first = revision + 1;
    this.#bytes = 0;
  }

  /** Appends the events of the next revision. */
  append(events: readonly WatchEvent[]): void {
    this.#revisions.push(events);
    this.#bytes += bytesOf(events);
    if (this.#bytes > this.#bytesMax) this.#forgetSome();
  }

  /** A tenth at once, because moving the rest is expensive. */
  #forgetSome(): void {
    let count = 0;
    while (this.#bytes > 0.9 * this.#bytesMax && count < this.#revisions.length - 1)
      this.#bytes -= bytesOf(this.#revisions[count++] ?? []);
    this.#revisions.splice(0, count);
    this.#first += count;
  }

  /** The next events after `after`, whole revisions; undefined when they are not kept. */
  read(prefix: string, after: Revision): { events: readonly WatchEvent[]; through: Revision } | undefined {
    if (after + 1 < this.#first) return undefined;
    const events: WatchEvent[] = [];
    let at = after + 1 - this.#first;
    for (; at < this.#revisions.length && events.length < eventsPerReadMax; at++)
      for (const event of this.#revisions[at] ?? []) if (event.key.startsWith(prefix)) events.push(event);
    return { events, through: this.#first + at - 1 };
  }
}

function bytesOf(events: readonly WatchEvent[]): number {
  let bytes = 64;
  for (const { key, value } of events) bytes += 128 + key.length + (value?.byteLength ?? 0);
  return bytes;
}
