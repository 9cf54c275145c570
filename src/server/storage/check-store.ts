// Reads all that is in a store, entries and history, and says what does not fit together. It changes nothing.

import type { AnyRecord } from '../../core/state/records.ts';
import { decodeRecord, UnreadableRecord } from '../../core/state/codec.ts';
import { auditNotesPrefix, kindOfKey } from '../../core/state/keys.ts';
import { isSealedRow } from '../sealing/sealed-rows.ts';
import { changesBetween } from '../../store/changes-between.ts';
import { pagesOf } from '../../store/pages.ts';
import { Compacted, type Key, type Revision, type Store } from '../../store/store.ts';
import { clusterIn } from './cluster-record.ts';

export interface StoreCheck {
  readonly entries: number;
  /** Records that cannot be read without a master key. */
  readonly encrypted: number;
  readonly revision: Revision;
  /** How many revisions can still be watched, and the changes in them. */
  readonly history: number;
  readonly changes: number;
  /** Why no server may write to it now; missing: they may. */
  readonly closed?: string;
  /** Sentences; empty when all is well. */
  readonly faults: readonly string[];
}

const faultsMax = 100;

export async function checkStore(
  store: Store,
  { onProgress }: { readonly onProgress?: (entries: number) => void } = {},
): Promise<StoreCheck> {
  const faults: string[] = [];
  const fault = (text: string): void => {
    if (faults.length < faultsMax) faults.push(text);
  };
  const revisions = new Map<Key, Revision>();
  let first: Revision | undefined;
  let newest: Revision = 0;
  let before = '';
  let encrypted = 0;
  for await (const page of pagesOf(store)) {
    first ??= page.revision;
    newest = page.revision;
    for (const { key, value, revision: written } of page.entries) {
      if (key <= before) fault(`${key} is listed after ${before}`);
      before = key;
      if (written > page.revision) fault(`${key} was written at revision ${written}, the store is at ${page.revision}`);
      revisions.set(key, written);
      if (key.startsWith(auditNotesPrefix)) continue;
      if (isSealedRow(value)) {
        encrypted += 1;
        continue;
      }
      const record = recordAt(key, value, fault);
      if (record && kindOfKey(key) !== record.kind) fault(`${key} holds a record of kind "${record.kind}"`);
    }
    onProgress?.(revisions.size);
  }
  // What changed while the pages were read; from here on it is one state.
  for await (const events of changesBetween(store, first ?? 0, newest))
    for (const { key, revision, value } of events) {
      if (value === null) revisions.delete(key);
      else revisions.set(key, revision);
    }
  const { history, changes } = await checkHistory(store, { newest, revisions, fault });
  const why = await whyClosedIn(store);
  return {
    entries: revisions.size,
    encrypted,
    revision: newest,
    history,
    changes,
    ...(why === undefined ? {} : { closed: why }),
    faults,
  };
}

function recordAt(key: Key, value: Uint8Array, fault: (text: string) => void): AnyRecord | undefined {
  try {
    return decodeRecord(key, value);
  } catch (error) {
    if (!(error instanceof UnreadableRecord)) throw error;
    fault(error.message);
    return undefined;
  }
}

/** Revisions must follow one another, and what the history says last of a key must be what the key has. */
async function checkHistory(
  store: Store,
  at: {
    readonly newest: Revision;
    readonly revisions: ReadonlyMap<Key, Revision>;
    readonly fault: (text: string) => void;
  },
): Promise<{ history: number; changes: number }> {
  const { newest, revisions, fault } = at;
  const last = new Map<Key, { readonly revision: Revision; readonly there: boolean }>();
  let history = 0;
  let changes = 0;
  let after = 0;
  const over = new AbortController();
  for (let begun = false; after < newest; ) {
    try {
      for await (const batch of store.watch('', after, over.signal)) {
        begun = true;
        for (const { key, revision, value } of batch) {
          if (revision > newest) continue;
          if (revision > after + 1) fault(`history goes from revision ${after} to ${revision}`);
          if (revision < after) fault(`history goes back from revision ${after} to ${revision}`);
          if (revision !== after) history += 1;
          after = revision;
          changes += 1;
          last.set(key, { revision, there: value !== null });
        }
        if ((batch.at(-1)?.revision ?? 0) >= newest) break;
      }
      break;
    } catch (error) {
      if (!(error instanceof Compacted)) throw error;
      if (begun && error.before - 1 <= after) throw error;
      if (begun) last.clear(); // compacted during the read: read the rest again
      after = error.before - 1;
      begun = true;
    }
  }
  over.abort();
  for (const [key, { revision, there }] of last) {
    const found = revisions.get(key);
    if (there && found !== revision)
      fault(`history says that ${key} was written at revision ${revision}, it has ${found ?? 'gone'}`);
    if (!there && found !== undefined)
      fault(`history says that ${key} was deleted at revision ${revision}, it is there from revision ${found}`);
  }
  return { history, changes };
}

/** A record that cannot be read is a fault that was told already. */
async function whyClosedIn(store: Store): Promise<string | undefined> {
  try {
    return (await clusterIn(store))?.cluster.closed?.why;
  } catch (error) {
    if (error instanceof UnreadableRecord) return undefined;
    throw error;
  }
}
