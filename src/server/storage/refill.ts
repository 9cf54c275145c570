// Replaces the content of a store, for a restore or a move to another store, while control planes may be running on it. First
// the store is closed to all of them, last it is opened again with a new epoch: their commits in between are refused, and after
// a crash the store stays closed until this is repeated.
//
//   closed, new epoch ─▶ delete surplus entries ─▶ write missing and different entries ─▶ open

import type { AnyRecord, Cluster } from '../../core/state/records.ts';
import { decodeRecord, encodeRecord, UnreadableRecord } from '../../core/state/codec.ts';
import { keys, prefixOf } from '../../core/state/keys.ts';
import { recordsVersion } from '../../core/state/upgrade.ts';
import { pagesOf } from '../../store/pages.ts';
import { type CommitResult, type Key, type Store, StoreError, type Write } from '../../store/store.ts';
import { BadBackup } from './backup.ts';
import { clusterIn, clusterOf, leaderIn } from './cluster-record.ts';

export interface Refill {
  readonly entries: ReadonlyMap<Key, Uint8Array>;
  /** Null: the record is left out. `newestSession`: the newest session of any host in the store so far. */
  readonly convert: (record: AnyRecord, present: { readonly newestSession: number }) => AnyRecord | null;
  readonly newEpoch: string;
  readonly nowMs: number;
  /** The kind of refill, and the reason that control planes give meanwhile. */
  readonly by: 'restore' | 'move';
  readonly why: string;
  readonly restored: Omit<NonNullable<Cluster['restored']>, 'newestInstanceMs'>;
  readonly onProgress?: (done: number, all: number) => void;
}

const writesMax = 1_000;
const bytesMax = 4 * 1024 * 1024;
/** Records that belong to the store itself and are not replaced. */
const ofTheStore: ReadonlySet<Key> = new Set([keys.cluster, keys.leader, keys.leaderLease]);

/**
 * The addresses of another fleet's servers must not be copied: clients would connect to them. Records are encrypted again
 * under the data keys of the store that they are written to.
 */
function isOfTheStore(key: Key): boolean {
  return ofTheStore.has(key) || key.startsWith(prefixOf('member')) || key.startsWith(prefixOf('dataKey'));
}

/** Returns how many entries were deleted and written. Throws `StoreError`. */
export async function refill(
  store: Store,
  { entries, convert, ...options }: Refill,
): Promise<{ deleted: number; written: number }> {
  const present = await clusterIn(store);
  const kept = clusterOf(entries.get(keys.cluster));
  // The hosts of a store have its tokens. A store without hosts takes the tokens that the restored hosts have.
  const { hosts, newestSession } = await hostsIn(store);
  const before = hosts > 0 ? (present?.cluster ?? kept) : (kept ?? present?.cluster);
  if (!before) throw new BadBackup('it has no record of the store that it is of, so its tokens are not known');
  // All of it must be readable before anything is closed or deleted.
  const { wanted, newestInstanceMs } = convertedOf(entries, (record) => convert(record, { newestSession }));
  const { closed: _, ...cluster }: Cluster = {
    kind: 'cluster',
    recordsVersion: Math.max(recordsVersion, present?.cluster.recordsVersion ?? 0, kept?.recordsVersion ?? 0),
    createdAtMs: before.createdAtMs,
    tokenSecret: before.tokenSecret,
    ...(before.operatorToken === undefined ? {} : { operatorToken: before.operatorToken }),
    ...(before.operatorDigest === undefined ? {} : { operatorDigest: before.operatorDigest }),
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
  const counts = await replaceEntries(store, fence, { wanted, onProgress: options.onProgress });
  assertCommitted(
    await store.commit([fence], [{ key: keys.cluster, value: encodeRecord(cluster) }]),
    'opening the store',
  );
  options.onProgress?.(wanted.size, wanted.size);
  return counts;
}

type Fence = Parameters<Store['commit']>[0][number];

async function replaceEntries(
  store: Store,
  fence: Fence,
  { wanted, onProgress }: { readonly wanted: ReadonlyMap<Key, Uint8Array>; readonly onProgress: Refill['onProgress'] },
): Promise<{ deleted: number; written: number }> {
  let done = 0;
  const writes = new BatchedWrites(store, fence, () => onProgress?.(done, wanted.size));
  const same = new Set<Key>();
  let deleted = 0;
  for await (const page of pagesOf(store)) {
    for (const { key, value } of page.entries) {
      if (isOfTheStore(key)) continue;
      const is = wanted.get(key);
      if (is && Buffer.compare(is, value) === 0) same.add(key);
      if (is) continue;
      deleted += 1;
      await writes.add({ key, value: null });
    }
  }
  let written = 0;
  for (const [key, value] of wanted) {
    done += 1;
    if (same.has(key)) continue;
    written += 1;
    await writes.add({ key, value });
  }
  await writes.flush();
  return { deleted, written };
}

/** Commits writes in batches, each on the condition that the store is still closed by this process. */
class BatchedWrites {
  readonly #store: Store;
  readonly #fence: Fence;
  readonly #onCommitted: () => void;
  readonly #batch: Write[] = [];
  #bytes = 0;

  constructor(store: Store, fence: Fence, onCommitted: () => void) {
    this.#store = store;
    this.#fence = fence;
    this.#onCommitted = onCommitted;
  }

  async add(write: Write): Promise<void> {
    this.#batch.push(write);
    this.#bytes += write.key.length + (write.value?.byteLength ?? 0);
    if (this.#batch.length >= writesMax || this.#bytes >= bytesMax) await this.flush();
  }

  async flush(): Promise<void> {
    if (this.#batch.length === 0) return;
    assertCommitted(await this.#store.commit([this.#fence], this.#batch.splice(0)), 'filling the store');
    this.#bytes = 0;
    this.#onCommitted();
  }
}

/** A store that is being moved away: no control plane may write. */
export interface ClosedStore {
  /** The server that has not released the leadership, and may still run. A server that is stopped cleanly releases it. */
  readonly ledBy?: string;
  /** Opens the store again: nothing was moved. */
  reopen(): Promise<void>;
  /** Closes the store permanently: its content was moved. */
  seal(): Promise<void>;
}

/** Closes a store for a move. A store whose move was interrupted is closed already. */
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

/** Whether a move to this store was interrupted, so that it may be continued. */
export async function isHalfMoved(store: Store): Promise<boolean> {
  return (await clusterIn(store))?.cluster.closed?.by === 'move';
}

/** Whether a store has no records: data keys alone encrypt nothing. */
export async function isEmpty(store: Store): Promise<boolean> {
  const ofDataKeys = (await store.list(prefixOf('dataKey'))).entries.length;
  return (await store.list('', { limit: ofDataKeys + 1 })).entries.length === ofDataKeys;
}

/** The number of hosts, and the newest session of any host, also of removed ones: its messages may still be in transit. */
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

/** The entries that the store is to have, without the records that belong to the store itself. */
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

/** For commits that no other write is expected to conflict with. */
function assertCommitted(result: CommitResult, what: string): asserts result is CommitResult & { ok: true } {
  if (!result.ok)
    throw new StoreError('Unavailable', `${what}: another process wrote to the store at the same time; try again`);
}
