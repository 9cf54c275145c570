// What is durable in the log but not yet in the table of entries. Reads look here first. It is written to the table in portions, in
// the order of the keys, so that what is rewritten often is written once and neighbours share their pages.

import type { Entry, Key, Revision, Write } from '../store.ts';

export interface Unapplied {
  readonly key: Key;
  readonly value: Uint8Array | null;
  readonly revision: Revision;
}

/** What a round takes: sorting more would be felt. */
const roundMax = 20_000;

export class UnappliedEntries {
  /** The oldest revision first. */
  readonly #entries = new Map<Key, Unapplied>();
  #round: { readonly entries: readonly Unapplied[]; readonly through: Revision; next: number } | undefined;

  get count(): number {
    return this.#entries.size;
  }

  /** Whether a round has begun and is not over. */
  get inRound(): boolean {
    return this.#round !== undefined;
  }

  /** undefined: not here, look in the table. */
  get(key: Key): Unapplied | undefined {
    return this.#entries.get(key);
  }

  add(writes: readonly Write[], revision: Revision): void {
    for (const { key, value } of writes) {
      this.#entries.delete(key); // so that it comes last
      this.#entries.set(key, { key, value, revision });
    }
  }

  clear(): void {
    this.#entries.clear();
    this.#round = undefined;
  }

  /**
   * The next portion of a round through the oldest that are here. `through` comes with a round's last portion: everything up to that
   * revision is in the table then. Call `applied` when it is.
   */
  portion(revision: Revision, size: number): { entries: readonly Unapplied[]; through?: Revision } | undefined {
    if (this.#entries.size === 0) return undefined;
    this.#round ??= this.#begin(revision);
    const { entries, next, through } = this.#round;
    const portion = entries.slice(next, next + size);
    return next + size < entries.length ? { entries: portion } : { entries: portion, through };
  }

  #begin(revision: Revision) {
    const entries: Unapplied[] = [];
    let through = revision;
    for (const entry of this.#entries.values()) {
      if (entries.length === roundMax) {
        through = entry.revision - 1; // of its own revision some may be in the round
        break;
      }
      entries.push(entry);
    }
    entries.sort((a, b) => (a.key < b.key ? -1 : 1));
    return { entries, through, next: 0 };
  }

  applied(entries: readonly Unapplied[]): void {
    for (const entry of entries) if (this.#entries.get(entry.key) === entry) this.#entries.delete(entry.key);
    if (!this.#round) return;
    this.#round.next += entries.length;
    if (this.#round.next >= this.#round.entries.length) this.#round = undefined;
  }

  /** What is in the table, read with as many entries above `limit` as there are here, and what is here, as one. */
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
