// The records of a store, as they were at one revision. Pages of a list may be of different ones, those of different kinds in any order: what
// was changed meanwhile is laid over them, or else a record would be seen beside one that is from before it.

import type { StoredEvent } from '../../core/state/cache.ts';
import { decodeRecord } from '../../core/state/codec.ts';
import { allPrefixes, kindOfKey } from '../../core/state/keys.ts';
import { type RecordKind, writtenOnce } from '../../core/state/records.ts';
import { changesBetween } from '../../store/changes-between.ts';
import { pagesOf } from '../../store/pages.ts';
import type { Key, Revision, Store } from '../../store/store.ts';

/** What a list did not tell. */
export interface Meanwhile {
  /**
   * The last change of each key that was changed while the store was read, but for those that were taken with it: laid over what was
   * listed, that is the store at `revision`.
   */
  readonly changes: readonly StoredEvent[];
  readonly revision: Revision;
}

export interface ReadOptions {
  /** Entries per page. */
  readonly limit?: number;
  /** Reading ends when it aborts. */
  readonly signal: AbortSignal;
}

/**
 * `take` gets what is listed as it comes, each key once. Throws `Compacted` when what was changed meanwhile is gone, `StoreError`,
 * `UnreadableRecord`, and the reason of `signal`.
 */
export async function readState(
  store: Store,
  take: (entries: readonly StoredEvent[]) => void,
  { limit, signal }: ReadOptions,
): Promise<Meanwhile> {
  const ordered: StoredEvent[] = [];
  let oldest = Number.POSITIVE_INFINITY;
  let newest = 0;
  const options = { prefixes: allPrefixes, ...(limit === undefined ? {} : { limit }) };
  for await (const page of pagesOf(store, options)) {
    signal.throwIfAborted();
    const entries: StoredEvent[] = [];
    for (const { key, value: bytes, revision } of page.entries) {
      const value = decodeRecord(key, bytes);
      (inOrderOfRevision.has(value.kind) ? ordered : entries).push({ key, value, revision });
    }
    page.release?.();
    take(entries);
    oldest = Math.min(oldest, page.revision);
    newest = Math.max(newest, page.revision);
  }
  /** The last of each key: no page is newer than all of them. */
  const changes = new Map<Key, StoredEvent>();
  for await (const events of changesBetween(store, oldest, newest, signal))
    for (const { key, value, revision } of events)
      if (kindOfKey(key) !== undefined) changes.set(key, { key, value: value && decodeRecord(key, value), revision });
  signal.throwIfAborted();
  take(byRevision(withChanges(ordered, changes)));
  return { changes: [...changes.values()], revision: newest };
}

/** Kinds of which the first written comes first: of images that share an alias the last one has it. The order of the others does not matter. */
const inOrderOfRevision: ReadonlySet<RecordKind> = new Set([...writtenOnce, 'image']);

/** Takes those changes out that the entries hold then. */
function withChanges(entries: readonly StoredEvent[], changes: Map<Key, StoredEvent>): readonly StoredEvent[] {
  if (changes.size === 0) return entries;
  const now: StoredEvent[] = [];
  for (const entry of entries) {
    const change = changes.get(entry.key) ?? entry;
    if (change.value === null) continue;
    changes.delete(entry.key);
    now.push(change);
  }
  for (const [key, change] of changes) {
    if (change.value === null || !inOrderOfRevision.has(change.value.kind)) continue;
    changes.delete(key);
    now.push(change);
  }
  return now;
}

/** Each place is one number, of the revision and of where it stood: numbers are sorted in a tenth of the time. */
function byRevision(entries: readonly StoredEvent[]): readonly StoredEvent[] {
  const count = entries.length;
  const places = new Float64Array(count);
  let at = 0;
  for (const { revision } of entries) {
    if (revision >= Number.MAX_SAFE_INTEGER / count - 1) return entries.toSorted((a, b) => a.revision - b.revision);
    places[at] = revision * count + at;
    at += 1;
  }
  return Array.from(places.sort(), (place) => entries[place % count]).filter((entry) => entry !== undefined);
}
