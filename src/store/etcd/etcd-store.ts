// A store in etcd, for several control planes at once: a log with one head that every commit advances, and entries that follow it
// (layout.ts). Nothing is answered from memory alone: every read and every commit goes to etcd, and a majority of its members has what
// was returned.
//
//   commit ──▶ queue ── batch ──▶ LogWriter: one transaction, if the head is as known ──▶ answers
//                                     │                                   │
//   get, list ──▶ LogReader ──▶ known state: the log beyond the entries ◀─┘──▶ SharedLog ──▶ watchers
//                     ▲               │                                            ▲
//                     └─── etcd ◀── EntryFollower                    HeadWatch ────┘ "there is more"

import { describeError, type Logger, silentLogger } from '../../base/log.ts';
import type { Clock, Timer } from '../../base/clock.ts';
import type { Prng } from '../../base/prng.ts';
import { randomSecret, systemClock, systemPrng } from '../../base/system.ts';
import { checkCommit, checkCompact, checkKey, checkList, endOfPrefix, startOfList } from '../check-request.ts';
import { GroupCommit } from '../group-commit.ts';
import { SharedLog } from '../shared-log.ts';
import {
  type CommitResult,
  type Condition,
  type Entry,
  type Key,
  type Listed,
  type ListOptions,
  type Revision,
  type Store,
  StoreError,
  type Write,
} from '../store.ts';
import { compactLog } from './compaction.ts';
import { EntryFollower } from './entry-follower.ts';
import { type Etcd, EtcdClient } from './etcd-client.ts';
import type { KeyValue } from './answers.ts';
import type { WatchResponse } from './etcd-rpc.ts';
import { parseEtcdUrl } from './etcd-url.ts';
import { HeadWatch } from './head-watch.ts';
import { KnownState } from './known-state.ts';
import { decodeHead, encodeHead, layoutOf, unchanged } from './layout.ts';
import { LogReader } from './log-reader.ts';
import { type CommitRequest, LogWriter } from './log-writer.ts';

export interface EtcdStoreOptions {
  /** The part of the URL after `etcd:`; see etcd-url.ts. */
  readonly rest: string;
  readonly log?: Logger;
  /** Refuses a prefix without a store instead of creating one. */
  readonly mustExist?: boolean;
  /** How long a request is retried while etcd is unavailable; default 12 s: an election plus a restart. */
  readonly patienceMs?: number;
}

const patienceMsDefault = 12_000;
/** At the start a wrong host name should be reported soon. */
const openPatienceMs = 3_000;
/**
 * A process reads the whole store after opening it, and concurrent writes slow that down; commits make the entries
 * follow earlier.
 */
const readFirstMs = 10_000;

/** The maximum in a record without parts. */
const batchCommitsMax = 1024;
const batchBytesMax = 900 * 1024;

export async function openEtcdStore(options: EtcdStoreOptions): Promise<Store> {
  const address = parseEtcdUrl(options.rest);
  const prng = systemPrng();
  const { patienceMs = patienceMsDefault } = options;
  const log = (options.log ?? silentLogger).with({ store: address.name });
  const etcd = new EtcdClient({ address, clock: systemClock, prng, patienceMs });
  try {
    await requireVersion(etcd);
    if (etcd.loginIsVain)
      log.warn(
        'authentication is off in etcd: user and password of the URL protect nothing; "etcdctl auth enable" turns it on',
      );
    return await openOn({
      etcd,
      prefix: address.prefix,
      clock: systemClock,
      prng,
      log,
      mustExist: options.mustExist ?? false,
    });
  } catch (error) {
    etcd.close();
    throw error;
  }
}

interface Ground {
  readonly etcd: Etcd;
  readonly prefix: string;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly log: Logger;
  readonly mustExist?: boolean;
}

/** Takes ownership of `etcd`, which is closed with the store. */
export async function openOn(ground: Ground): Promise<Store> {
  const { etcd, prefix } = ground;
  const layout = layoutOf(prefix);
  const { kvs } = await etcd.call('range', { key: layout.head }, 'opening the store', { patienceMs: openPatienceMs });
  if (decodeHead(kvs[0], etcd.name).modRevision === '0') {
    if (ground.mustExist)
      throw new StoreError(
        'Invalid',
        `there is no store under prefix "${prefix}" on ${etcd.name}; the URL ends with it`,
      );
    const success = [{ requestPut: { key: layout.head, value: [encodeHead(0)] } }];
    await etcd.call('txn', { compare: [unchanged(layout.head, '0')], success, failure: [] }, 'making a new store');
  }
  const store = new EtcdStore(ground);
  try {
    await store.open();
    return store;
  } catch (error) {
    await store.close();
    throw error;
  }
}

async function requireVersion(etcd: Etcd): Promise<void> {
  const { version } = await etcd.call('status', {}, 'opening the store', { patienceMs: openPatienceMs });
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major < 3 || (major === 3 && minor < 4))
    throw new StoreError('Invalid', `${etcd.name} runs etcd ${version}; Berth needs 3.4 or newer`);
}

interface Request extends CommitRequest {
  readonly bytes: number;
  readonly resolve: (result: CommitResult) => void;
  readonly reject: (error: unknown) => void;
}

class EtcdStore implements Store {
  readonly pageEntries = 8_000; // four of them are held at a time: see `pagesOf`
  readonly #ground: Ground;
  readonly #etcd: Etcd;
  readonly #layout;
  readonly #known = new KnownState();
  readonly #reader: LogReader;
  readonly #writer: LogWriter;
  readonly #follower: EntryFollower;
  #shared: SharedLog | undefined;
  #watch: HeadWatch | undefined;
  #restTimer: Timer | undefined;
  #closing: Promise<void> | undefined;
  /** A batch is in progress: the watch most likely reports that batch. */
  #writing = false;
  #headHeard: KeyValue | null = null;
  readonly #commits = new GroupCommit<Request>({
    commitsMax: batchCommitsMax,
    bytesMax: batchBytesMax,
    bytesOf: ({ bytes }) => bytes,
    write: (batch) => this.#write(batch),
  });

  constructor(ground: Ground) {
    this.#ground = ground;
    this.#etcd = ground.etcd;
    this.#layout = layoutOf(ground.prefix);
    const parts = { ...ground, layout: this.#layout, known: this.#known };
    this.#reader = new LogReader({
      ...parts,
      onTaken: (commits) => this.#shared?.committed(commits),
      onSkipped: (revision) => this.#shared?.heard(revision),
    });
    this.#writer = new LogWriter({
      ...parts,
      reader: this.#reader,
      randomSecret,
      onTaken: (commits) => this.#shared?.committed(commits),
    });
    this.#follower = new EntryFollower({ ...parts, reader: this.#reader });
  }

  async open(): Promise<void> {
    const { revision, compacted } = await this.#reader.begin();
    this.#shared = new SharedLog({
      read: (after) => this.#reader.page(after),
      revision,
      compacted,
      clock: this.#ground.clock,
      onLost: (error) => this.#ground.log.warn('the log cannot be read', { cause: describeError(error) }),
    });
    this.#watch = new HeadWatch({ ...this.#ground, key: this.#layout.head, onAnswer: (answer) => this.#hear(answer) });
    this.#restTimer = this.#ground.clock.setTimer(readFirstMs, () => this.#follower.start(), { background: true });
  }

  async get(key: Key): Promise<Entry | null> {
    checkKey(key);
    this.#assertOpen(`get of "${key}"`);
    return this.#reader.get(key);
  }

  async list(prefix: string, options: ListOptions = {}): Promise<Listed> {
    checkList(prefix, options);
    this.#assertOpen(`list of "${prefix}"`);
    const start = startOfList(prefix, options);
    return this.#reader.list(prefix, { start, end: endOfPrefix(prefix), limit: options.limit ?? Infinity });
  }

  async commit(conditions: readonly Condition[], writes: readonly Write[]): Promise<CommitResult> {
    const bytes = checkCommit(conditions, writes) + 10 * writes.length;
    this.#assertOpen('commit');
    return new Promise((resolve, reject) => {
      // A copy: the transaction comes later, and the caller may reuse its arrays and buffers.
      const copies = writes.map(({ key, value }) => ({ key, value: value === null ? null : new Uint8Array(value) }));
      this.#commits.add({ conditions: conditions.map((one) => ({ ...one })), writes: copies, bytes, resolve, reject });
    });
  }

  watch(prefix: string, after: Revision, signal: AbortSignal): ReturnType<Store['watch']> {
    return this.#sharedLog().watch(prefix, after, signal);
  }

  async compact(before: Revision): Promise<void> {
    this.#assertOpen('compaction');
    checkCompact(before, await this.#reader.revision('compaction'));
    await compactLog(
      { etcd: this.#etcd, layout: this.#layout, reader: this.#reader, follower: this.#follower },
      before,
    );
    await this.#sharedLog().refresh(); // so that watchers here are notified
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await this.#commits.settled();
    await this.#follower.close();
    this.#restTimer?.cancel();
    this.#watch?.close();
    const sharedClosed = this.#shared?.close();
    this.#etcd.close();
    await sharedClosed;
  }

  async #write(batch: readonly Request[]): Promise<void> {
    try {
      await this.#writer.giveTurn();
      await this.#follower.bearable();
      this.#writing = true;
      const lag = this.#follower.lag();
      const results = await this.#writer.commit(batch);
      for (const [i, request] of batch.entries()) {
        const result = results[i];
        if (result) request.resolve(result);
      }
      if (this.#follower.lag() > lag) this.#follower.start();
    } catch (error) {
      for (const request of batch) request.reject(error);
    } finally {
      this.#writing = false;
      this.#followHead();
    }
  }

  #hear({ events }: WatchResponse): void {
    this.#headHeard = events.at(-1)?.kv ?? this.#headHeard;
    if (!this.#writing) this.#followHead();
  }

  #followHead(): void {
    const kv = this.#headHeard;
    this.#headHeard = null;
    if (!kv || Number(kv.modRevision) <= Number(this.#known.modRevision)) return; // mostly an own commit
    this.#writer.turnTaken();
    try {
      this.#shared?.heard(decodeHead(kv, this.#etcd.name).revision);
    } catch (error) {
      // The next read or commit finds the same problem and reports it.
      this.#ground.log.error('the head of the log cannot be understood', { cause: describeError(error) });
    }
  }

  #sharedLog(): SharedLog {
    if (!this.#shared) throw new StoreError('Closed', 'the store is not open yet');
    return this.#shared;
  }

  #assertOpen(attempted: string): void {
    if (this.#closing) throw new StoreError('Closed', `${attempted} refused: the store was closed`);
  }
}
