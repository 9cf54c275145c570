// What is durable in the log but not yet in the table of entries. Reads look here first. It is written to the table in
// portions sorted by key, so that a frequently rewritten key is written once and neighbours share their pages.

import { assert } from '../../base/assert.ts';
import type { Entry, Key, Revision, Write } from '../store.ts';

export interface Unapplied {
  readonly key: Key;
  readonly value: Uint8Array | null;
  readonly revision: Revision;
}

/** The size of a round, rounded up to a whole commit: sorting more would be noticeable. */
const roundMin = 20_000;

export class UnappliedEntries {
  readonly #entries = new Map<Key, Unapplied>();
  /**
   * The keys that each revision wrote, the oldest first. Without values: for overwritten values only the key is kept.
   */
  #written: { readonly revision: Revision; readonly keys: readonly Key[] }[] = [];
  #writtenCount = 0;
  #round: { readonly entries: readonly Unapplied[]; readonly through: Revision; next: number } | undefined;

  /** Number of keys. */
  get size(): number {
    return this.#entries.size;
  }

  /**
   * Number of changes, plus the number of keys of a round in progress: what must be read from the log after a crash.
   */
  get changes(): number {
    return this.#writtenCount + (this.#round ? this.#round.entries.length - this.#round.next : 0);
  }

  /** Whether a round is in progress. */
  get inRound(): boolean {
    return this.#round !== undefined;
  }

  /** undefined: not here, look in the table. */
  get(key: Key): Unapplied | undefined {
    return this.#entries.get(key);
  }

  /** Called once for each revision, in order, with all of its writes: a round ends with a revision. */
  add(writes: readonly Write[], revision: Revision): void {
    assert(revision > (this.#written.at(-1)?.revision ?? 0), () => `revision ${revision} comes twice`);
    for (const { key, value } of writes) this.#entries.set(key, { key, value, revision });
    this.#written.push({ revision, keys: writes.map(({ key }) => key) });
    this.#writtenCount += writes.length;
  }

  clear(): void {
    this.#entries.clear();
    this.#written = [];
    this.#writtenCount = 0;
    this.#round = undefined;
  }

  /**
   * The next portion of a round over the oldest changes. The last portion of a round has `through`: with it, everything
   * up to that revision is in the table. Call `applied` then.
   */
  portion(size: number): { entries: readonly Unapplied[]; through?: Revision } | undefined {
    if (this.#entries.size === 0) return undefined;
    this.#round ??= this.#begin();
    const { entries, next, through } = this.#round;
    const portion = entries.slice(next, next + size);
    return next + size < entries.length ? { entries: portion } : { entries: portion, through };
  }

  #begin() {
    const entries: Unapplied[] = [];
    let through = 0;
    let count = 0;
    for (const { revision, keys } of this.#written) {
      if (entries.length >= roundMin) break;
      count += 1;
      through = revision;
      this.#writtenCount -= keys.length;
      for (const key of keys) {
        const entry = this.#entries.get(key);
        if (entry?.revision === revision) entries.push(entry);
      }
    }
    this.#written.splice(0, count);
    entries.sort((a, b) => (a.key < b.key ? -1 : 1));
    return { entries, through, next: 0 };
  }

  applied(entries: readonly Unapplied[]): void {
    for (const entry of entries) if (this.#entries.get(entry.key) === entry) this.#entries.delete(entry.key);
    if (!this.#round) return;
    this.#round.next += entries.length;
    if (this.#round.next >= this.#round.entries.length) this.#round = undefined;
  }

  /** Merges the table's entries, read with as many above `limit` as there are here, with those here. */
  over(stored: readonly Entry[], { start, end, limit }: { start: string; end: string; limit: number }): Entry[] {
    const merged = new Map(stored.map((entry) => [entry.key, entry]));
    for (const { key, value, revision } of this.#entries.values()) {
      if (key < start || key >= end) continue;
      if (value === null) merged.delete(key);
      else merged.set(key, { key, value: new Uint8Array(value), revision });
    }
    const entries = [...merged.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
    return limit < 0 ? entries : entries.slice(0, limit);
  }
}
