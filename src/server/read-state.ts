// The records of a store, as they were at one revision. Pages of a list may be of different ones, those of different kinds in any order: what
// was changed meanwhile is laid over them, or else a record would be seen beside one that is from before it.

import type { StoredEvent } from '../core/state/cache.ts';
import { decodeRecord, RecordsDecoder } from '../core/state/codec.ts';
import { allPrefixes, kindOfKey } from '../core/state/keys.ts';
import { type RecordKind, writtenOnce } from '../core/state/records.ts';
import { changesBetween } from '../store/changes-between.ts';
import { pagesOf } from '../store/pages.ts';
import type { Key, Revision, Store } from '../store/store.ts';

export interface StoreState {
  readonly entries: readonly StoredEvent[];
  readonly revision: Revision;
}

export interface ReadOptions {
  /** Entries per page. */
  readonly limit?: number;
  /** Reading ends when it aborts. */
  readonly signal: AbortSignal;
}

/** Throws `Compacted` when what was changed meanwhile is gone, `StoreError`, `UnreadableRecord`, and the reason of `signal`. */
export async function readState(store: Store, { limit, signal }: ReadOptions): Promise<StoreState> {
  const entries: StoredEvent[] = [];
  const decoder = new RecordsDecoder();
  let oldest = Number.POSITIVE_INFINITY;
  let newest = 0;
  const options = { prefixes: allPrefixes, ...(limit === undefined ? {} : { limit }) };
  for await (const page of pagesOf(store, options)) {
    signal.throwIfAborted();
    decoder.decode(page.entries, ({ key, revision }, value) => entries.push({ key, value, revision }));
    oldest = Math.min(oldest, page.revision);
    newest = Math.max(newest, page.revision);
  }
  /** The last of each key: no page is newer than all of them. */
  const changes = new Map<Key, StoredEvent>();
  for await (const events of changesBetween(store, oldest, newest, signal))
    for (const { key, value, revision } of events)
      if (kindOfKey(key) !== undefined) changes.set(key, { key, value: value && decodeRecord(key, value), revision });
  signal.throwIfAborted();
  return { entries: asListed(changes.size > 0 ? withChanges(entries, changes) : entries), revision: newest };
}

function withChanges(entries: readonly StoredEvent[], changes: Map<Key, StoredEvent>): readonly StoredEvent[] {
  const now: StoredEvent[] = [];
  for (const entry of entries) {
    const change = changes.get(entry.key) ?? entry;
    changes.delete(entry.key);
    if (change.value !== null) now.push(change);
  }
  for (const change of changes.values()) if (change.value !== null) now.push(change);
  return now;
}

/** Kinds of which the first written comes first: of images that share an alias the last one has it. Nobody asks for that of the others. */
const inOrderOfRevision: ReadonlySet<RecordKind> = new Set([...writtenOnce, 'image']);

function asListed(entries: readonly StoredEvent[]): readonly StoredEvent[] {
  const [others, ordered]: [StoredEvent[], StoredEvent[]] = [[], []];
  for (const entry of entries) (entry.value && inOrderOfRevision.has(entry.value.kind) ? ordered : others).push(entry);
  return others.concat(byRevision(ordered));
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
