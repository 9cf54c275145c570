// The events that came last, in order of revision, shared by all readers. A reader that is further behind looks through all that are kept.

import type { Event } from '../../api/resources/event.ts';
import type { Cache } from '../../core/state/cache.ts';
import { prefixOf } from '../../core/state/keys.ts';

interface Noted {
  readonly key: string;
  readonly revision: number;
}

export interface EventsRead {
  readonly events: readonly Event[];
  /** There are more. */
  readonly more: boolean;
  /** Up to where events were deleted before this reader saw them; undefined: none that this process has seen come. */
  readonly deletedUntil?: number;
}

/** Some hundred bytes each. */
const notedMax = 10_000;

export class EventFeed {
  readonly #cache: Cache;
  readonly #prefix = prefixOf('event');
  readonly #forget: () => void;
  #noted: Noted[] = [];
  /** Every later event is in `#noted`. */
  #since: number;

  constructor(cache: Cache) {
    this.#cache = cache;
    this.#since = cache.newestRevision;
    this.#forget = cache.onCommitted((key) => {
      if (key.startsWith(this.#prefix)) this.#note(key);
    });
  }

  stop(): void {
    this.#forget();
  }

  /**
   * The first events after a revision, at least `max` and never a part of a revision, and whether there are more. Nothing is told beyond a
   * revision that has not come yet: what another server has written before may come later than what this one has written.
   */
  after(revision: number, max: number): EventsRead {
    const later = this.sawAllSince(revision) ? this.#notedAfter(revision) : this.#keptAfter(revision);
    const events: Event[] = [];
    let deleted: { deletedUntil?: number } = {};
    for (const { key, revision: at } of later) {
      const isEnough = events.length >= max && at !== events.at(-1)?.metadata.revision;
      if (isEnough || !this.#cache.holds(at)) return { events, more: true, ...deleted };
      const value = this.#cache.committed('event', key)?.value;
      if (value) events.push({ ...value, metadata: { ...value.metadata, revision: at } });
      else deleted = { deletedUntil: at };
    }
    return { events, more: false, ...deleted };
  }

  /** Whether this process noted all that came after a revision, also what was deleted since. */
  sawAllSince(revision: number): boolean {
    return revision >= this.#since;
  }

  /** How many events came after a revision. */
  countAfter(revision: number): number {
    return (revision >= this.#since ? this.#notedAfter(revision) : this.#keptAfter(revision)).length;
  }

  /** The revision of the oldest event that is kept; undefined: none is. */
  oldestKept(): number | undefined {
    let oldest: number | undefined;
    for (const { revision } of this.#cache.listCommitted('event'))
      if (oldest === undefined || revision < oldest) oldest = revision;
    return oldest;
  }

  #note(key: string): void {
    const entry = this.#cache.committed('event', key);
    if (!entry) return; // it is deleted, because it is old
    const { revision } = entry;
    let at = this.#noted.length;
    while (at > 0 && (this.#noted[at - 1]?.revision ?? 0) > revision) at -= 1;
    this.#noted.splice(at, 0, { key, revision });
    if (this.#noted.length < 2 * notedMax) return;
    this.#since = this.#noted[notedMax - 1]?.revision ?? this.#since;
    this.#noted = this.#noted.slice(notedMax);
  }

  #notedAfter(revision: number): Noted[] {
    let [low, high] = [0, this.#noted.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#noted[middle]?.revision ?? 0) <= revision) low = middle + 1;
      else high = middle;
    }
    return this.#noted.slice(low);
  }

  #keptAfter(after: number): Noted[] {
    const kept: Noted[] = [];
    for (const { key, revision } of this.#cache.listCommitted('event'))
      if (revision > after) kept.push({ key, revision });
    return kept.sort((a, b) => a.revision - b.revision);
  }
}
