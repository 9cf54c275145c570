// Fills a store with other content, as a restore or a move to another store does, while control planes may be running on it. First it is
// closed to all of them, last it is opened again as another epoch: whatever they decide in between is refused, and what a crash in
// between leaves stays closed until this is done again.
//
//   closed, new epoch ─▶ what is too much goes ─▶ what is missing or differs comes ─▶ open

import type { AnyRecord, Cluster } from '../core/state/records.ts';
import { decodeRecord, encodeRecord, UnreadableRecord } from '../core/state/codec.ts';
import { keys, prefixOf } from '../core/state/keys.ts';
import { schemaVersion } from '../core/state/upgrade.ts';
import { pagesOf } from '../store/pages.ts';
import { type CommitResult, type Key, type Store, StoreError, type Write } from '../store/store.ts';
import { BadBackup } from './backup.ts';
import { clusterIn, clusterOf, leaderIn } from './cluster-record.ts';

export interface Refill {
  readonly entries: ReadonlyMap<Key, Uint8Array>;
  /** Null: it is left out. `newestSession`: of any host that the store has come to. */
  readonly convert: (record: AnyRecord, present: { readonly newestSession: number }) => AnyRecord | null;
  readonly newEpoch: string;
  readonly nowMs: number;
  /** What it is, and what control planes tell meanwhile. */
  readonly by: 'restore' | 'move';
  readonly why: string;
  readonly restored: Omit<NonNullable<Cluster['restored']>, 'newestInstanceMs'>;
  readonly onProgress?: (done: number, all: number) => void;
}

const writesMax = 1_000;
const bytesMax = 4 * 1024 * 1024;
/** Of the store itself, whatever is put into it. */
const ofTheStore: ReadonlySet<Key> = new Set([keys.cluster, keys.leader, keys.leaderLease]);

/** The addresses of another fleet's servers must not come along: clients would follow them there. */
function isOfTheStore(key: Key): boolean {
  return ofTheStore.has(key) || key.startsWith(prefixOf('member'));
}

/** Answers how many entries were deleted and written. Throws `StoreError`. */
export async function refill(
  store: Store,
  { entries, convert, ...options }: Refill,
): Promise<{ deleted: number; written: number }> {
  const present = await clusterIn(store);
  const kept = clusterOf(entries.get(keys.cluster));
  // The hosts of a store know its tokens; one that has none yet takes those that the hosts to come know.
  const { hosts, newestSession } = await hostsIn(store);
  const before = hosts > 0 ? (present?.cluster ?? kept) : (kept ?? present?.cluster);
  if (!before) throw new BadBackup('it has no record of the store that it is of, so its tokens are not known');
  // All of it must be readable before anything is closed or deleted.
  const { wanted, newestInstanceMs } = convertedOf(entries, (record) => convert(record, { newestSession }));
  const { closed: _, ...cluster }: Cluster = {
    kind: 'cluster',
    recordsVersion: Math.max(schemaVersion, present?.cluster.recordsVersion ?? 0, kept?.recordsVersion ?? 0),
    createdAtMs: before.createdAtMs,
    tokenSecret: before.tokenSecret,
    operatorToken: before.operatorToken,
    epoch: options.newEpoch,
    restored: { ...options.restored, newestInstanceMs },
  };
  const close: Cluster = { ...cluster, closed: { by: options.by, why: options.why, sinceMs: options.nowMs } };
  const begun = await store.commit(
    [{ key: keys.cluster, ifRevision: present?.revision ?? 0 }],
    [{ key: keys.cluster, value: encodeRecord(close) }],
  );
  assertCommitted(begun, 'closing the store');
  const fence = { key: keys.cluster, ifRevision: begun.revision };

  const batch: Write[] = [];
  let bytes = 0;
  let done = 0;
  const flush = async (): Promise<void> => {
    if (batch.length === 0) return;
    assertCommitted(await store.commit([fence], batch.splice(0)), 'filling the store');
    bytes = 0;
    options.onProgress?.(done, wanted.size);
  };
  const write = async (one: Write): Promise<void> => {
    batch.push(one);
    bytes += one.key.length + (one.value?.byteLength ?? 0);
    if (batch.length >= writesMax || bytes >= bytesMax) await flush();
  };

  const same = new Set<Key>();
  let deleted = 0;
  for await (const page of pagesOf(store)) {
    for (const { key, value } of page.entries) {
      if (isOfTheStore(key)) continue;
      const is = wanted.get(key);
      if (is && Buffer.compare(is, value) === 0) same.add(key);
      if (is) continue;
      deleted += 1;
      await write({ key, value: null });
    }
  }
  let written = 0;
  for (const [key, value] of wanted) {
    done += 1;
    if (same.has(key)) continue;
    written += 1;
    await write({ key, value });
  }
  await flush();
  assertCommitted(
    await store.commit([fence], [{ key: keys.cluster, value: encodeRecord(cluster) }]),
    'opening the store',
  );
  options.onProgress?.(wanted.size, wanted.size);
  return { deleted, written };
}

/** A store that is being moved away: no control plane may write. */
export interface ClosedStore {
  /** The server that had not let go of it, and may be running still; one that stops in good order does. */
  readonly ledBy?: string;
  /** Takes it back: nothing was moved. */
  reopen(): Promise<void>;
  /** For good: all of it is elsewhere. */
  seal(): Promise<void>;
}

/** Closes a store for a move; one whose move was broken off is closed already. */
export async function closeForMove(store: Store, nowMs: number): Promise<ClosedStore> {
  const present = await clusterIn(store);
  if (!present) throw new StoreError('Invalid', 'the store holds nothing of Berth: no server has used it yet');
  const { closed, ...open } = present.cluster;
  if (closed && closed.by !== 'move') throw new StoreError('Unavailable', `the store is closed: ${closed.why}`);
  const put = async (ifRevision: number, record: Cluster): Promise<number> => {
    const writes = [{ key: keys.cluster, value: encodeRecord(record) }];
    const result = await store.commit([{ key: keys.cluster, ifRevision }], writes);
    assertCommitted(result, 'closing the store');
    return result.revision;
  };
  const why = 'a move to another store is in progress; if it was interrupted, run "berth store migrate" again';
  const ledBy = store.exclusive === true ? undefined : await leaderIn(store);
  const revision = await put(present.revision, { ...open, closed: { by: 'move', why, sinceMs: nowMs } });
  return {
    ...(ledBy === undefined ? {} : { ledBy }),
    reopen: async () => void (await put(revision, open)),
    seal: async () => {
      const moved = 'it has been moved to another store: start with that one; "berth restore" opens this one again';
      await put(revision, { ...open, closed: { by: 'moved', why: moved, sinceMs: nowMs } });
    },
  };
}

/** Whether a move to this store was begun and broken off, so that it may go on. */
export async function isHalfMoved(store: Store): Promise<boolean> {
  return (await clusterIn(store))?.cluster.closed?.by === 'move';
}

/** Whether a store holds nothing of a fleet yet. */
export async function isEmpty(store: Store): Promise<boolean> {
  return (await store.list('', { limit: 1 })).entries.length === 0;
}

/** How many there are, and the newest session of any, those that were removed too: messages of it may still be on their way. */
async function hostsIn(store: Store): Promise<{ readonly hosts: number; readonly newestSession: number }> {
  let hosts = 0;
  let newestSession = 0;
  for (const kind of ['host', 'removedHost'] as const) {
    for (const { key, value } of (await store.list(prefixOf(kind))).entries) {
      const record = decodeRecord(key, value);
      if (record.kind === 'host') hosts += 1;
      if (record.kind === 'host') newestSession = Math.max(newestSession, record.status.epoch);
      if (record.kind === 'removedHost') newestSession = Math.max(newestSession, record.lastEpoch);
    }
  }
  return { hosts, newestSession };
}

/** What is to be in the store, without its own records. */
function convertedOf(
  entries: ReadonlyMap<Key, Uint8Array>,
  convert: (record: AnyRecord) => AnyRecord | null,
): { readonly wanted: Map<Key, Uint8Array>; readonly newestInstanceMs: number } {
  const wanted = new Map<Key, Uint8Array>();
  let newestInstanceMs = 0;
  for (const [key, value] of entries) {
    if (isOfTheStore(key)) continue;
    try {
      const record = decodeRecord(key, value);
      const is = convert(record);
      if (is) wanted.set(key, is === record ? value : encodeRecord(is));
      if (is?.kind === 'instance') newestInstanceMs = Math.max(newestInstanceMs, is.metadata.createdAtMs);
    } catch (error) {
      if (error instanceof UnreadableRecord) throw new BadBackup(error.message, { cause: error });
      throw new BadBackup(`the record at ${key} cannot be taken back`, { cause: error });
    }
  }
  return { wanted, newestInstanceMs };
}

/** Where no other write is expected. */
function assertCommitted(result: CommitResult, what: string): asserts result is CommitResult & { ok: true } {
  if (!result.ok)
    throw new StoreError('Unavailable', `${what}: another process wrote to the store at the same time; try again`);
}
