// The embedded store: one SQLite file, one process, one connection. All commits asked for in one turn of the event loop share
// one transaction and one fsync, and none is answered before that fsync. It must never answer from a failed transaction.

import { existsSync, realpathSync } from 'node:fs';
import { assert } from '../../base/assert.ts';
import { describeError, type Logger, silentLogger } from '../../base/log.ts';
import { system } from '../../base/system.ts';
import { checkCommit, checkCompact, checkKey, checkList, endOfPrefix, startAfter } from '../check-request.ts';
import {
  type CommitResult,
  Compacted,
  type Condition,
  type Entry,
  type Key,
  type ListOptions,
  type Revision,
  type Store,
  StoreError,
  type WatchEvent,
  type Write,
} from '../store.ts';
import { WatchTail } from '../watch-tail.ts';
import { type Connection, connect } from './sqlite-connection.ts';
import { breaksConnection, sqliteCode, toStoreError } from './sqlite-errors.ts';
import { makeFolderOf, openFile, openSound } from './sqlite-file.ts';
import { type FileLock, lockFile } from './sqlite-lock.ts';

export interface SqliteStoreOptions {
  /** The file; beside it stand `-wal` while the store is open, and `.lock`. On a local file system. */
  readonly path: string;
  readonly log?: Logger;
  /** See `FileOptions`; default 256 MiB, about half a second. */
  readonly fullCheckBytesMax?: number;
}

/** What one transaction takes at most; the rest waits for the next, a turn later. Keeps one turn in the milliseconds. */
const batchCommitsMax = 1024;
const batchBytesMax = 8 * 1024 * 1024;

/** What a watcher gets at once, unless a single revision is larger. */
const watchLimits = { revisions: 256, bytes: 1024 * 1024 };

/** One transaction of a compaction, so that others get their turn in between. */
const forgetRevisionsMax = 2000;

export async function openSqliteStore(options: SqliteStoreOptions): Promise<Store> {
  makeFolderOf(options.path);
  const path = existsSync(options.path) ? realpathSync(options.path) : options.path;
  const lock = lockFile(path);
  try {
    const db = openFile({ path, fullCheckBytesMax: options.fullCheckBytesMax ?? 256 * 1024 * 1024 });
    return new SqliteStore({ connection: connect(path, db), lock, log: options.log ?? silentLogger });
  } catch (error) {
    lock.release();
    throw error;
  }
}

interface Request {
  readonly conditions: readonly Condition[];
  readonly writes: readonly Write[];
  readonly bytes: number;
  readonly resolve: (result: CommitResult) => void;
  readonly reject: (error: StoreError) => void;
}

class SqliteStore implements Store {
  readonly #path: string;
  readonly #lock: FileLock;
  readonly #log: Logger;
  /** null after a failure that left the connection in doubt, until the file can be opened again. */
  #connection: Connection | null;
  #revision: Revision = 0;
  #compactedBefore: Revision = 1;
  #queue: Request[] = [];
  #flushing = false;
  #closed = false;
  readonly #tail = new WatchTail({
    revision: () => this.#revision,
    read: (prefix, after) => this.#read(prefix, after),
    pause: () => new Promise((resolve) => system.afterTurn(resolve)),
  });

  constructor(opened: { connection: Connection; lock: FileLock; log: Logger }) {
    this.#path = opened.connection.path;
    this.#connection = opened.connection;
    this.#lock = opened.lock;
    this.#log = opened.log.with({ store: this.#path });
    this.#readState(opened.connection);
  }

  async get(key: Key): Promise<Entry | null> {
    checkKey(key);
    return this.#use(`get of "${key}"`, (connection) => connection.get(key));
  }

  async list(prefix: string, options: ListOptions = {}): Promise<{ entries: Entry[]; revision: Revision }> {
    checkList(prefix, options);
    const after = options.after === undefined ? '' : startAfter(options.after);
    const start = after > prefix ? after : prefix;
    return this.#use(`list of "${prefix}"`, (connection) => ({
      entries: connection.range(start, endOfPrefix(prefix), options.limit ?? -1),
      revision: this.#revision,
    }));
  }

  async commit(conditions: readonly Condition[], writes: readonly Write[]): Promise<CommitResult> {
    const bytes = checkCommit(conditions, writes);
    this.#assertOpen('commit');
    return new Promise((resolve, reject) => {
      // Copied: the transaction comes later, and the caller may use its arrays and buffers again.
      this.#queue.push({
        conditions: [...conditions],
        writes: writes.map(({ key, value }) => ({ key, value: value && new Uint8Array(value) })),
        bytes,
        resolve,
        reject,
      });
      this.#flushSoon();
    });
  }

  watch(prefix: string, after: Revision, signal: AbortSignal): AsyncIterable<readonly WatchEvent[]> {
    return this.#tail.watch(prefix, after, signal);
  }

  async compact(before: Revision): Promise<void> {
    this.#assertOpen('compaction');
    checkCompact(before, this.#revision);
    if (before <= this.#compactedBefore) return;
    this.#transact('compaction', (connection) => connection.writeCompacted(before));
    this.#compactedBefore = before;
    // Nobody reads these rows any more; what a crash leaves of them goes with the next compaction.
    while (!this.#closed && this.#transact('compaction', (connection) => connection.forget(before, forgetRevisionsMax)))
      await new Promise<void>((resolve) => system.afterTurn(resolve));
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    while (this.#queue.length > 0) this.#flush();
    this.#closed = true;
    this.#tail.close();
    try {
      this.#connection?.close();
    } finally {
      this.#connection = null;
      this.#lock.release();
    }
  }

  #flushSoon(): void {
    if (this.#flushing || this.#queue.length === 0) return;
    this.#flushing = true;
    system.afterTurn(() => {
      this.#flushing = false;
      this.#flush();
      this.#flushSoon();
    });
  }

  /** One batch, one transaction, one fsync; then, and only then, the answers. */
  #flush(): void {
    const batch = this.#takeBatch();
    if (batch.length === 0) return;
    try {
      const { results, revision, changed } = this.#transact('commit', (connection) => this.#apply(connection, batch));
      this.#revision = revision;
      batch.forEach((request, i) => {
        const result = results[i];
        assert(result, 'every request of a batch has its own result');
        request.resolve(result);
      });
      if (changed.length > 0) this.#tail.committed(revision, changed);
    } catch (error) {
      const failure = toStoreError(error, 'commit', this.#path, 'unknown');
      for (const request of batch) request.reject(failure);
    }
  }

  /** Each request sees those before it; one whose condition fails has written nothing. */
  #apply(connection: Connection, batch: readonly Request[]) {
    let revision = this.#revision;
    const changed: Key[] = [];
    const results = batch.map(({ conditions, writes }): CommitResult => {
      const failed = connection.failedCondition(conditions);
      if (failed) return { ok: false, key: failed.key };
      const changes = connection.apply(revision + 1, writes);
      if (changes.length > 0) revision++;
      for (const { key } of changes) changed.push(key);
      return { ok: true, revision };
    });
    if (revision > this.#revision) connection.writeRevision(revision);
    return { results, revision, changed };
  }

  /** Durable when it returns; throws a `StoreError` that says what is known of the outcome. */
  #transact<T>(attempted: string, work: (connection: Connection) => T): T {
    let committing = false;
    try {
      const connection = this.#connected();
      connection.begin();
      const result = work(connection);
      committing = true;
      connection.commit();
      return result;
    } catch (error) {
      throw this.#afterFailure(error, attempted, committing);
    }
  }

  #takeBatch(): Request[] {
    let count = 0;
    let bytes = 0;
    for (const request of this.#queue) {
      if (count > 0 && (count === batchCommitsMax || bytes + request.bytes > batchBytesMax)) break;
      count++;
      bytes += request.bytes;
    }
    return this.#queue.splice(0, count);
  }

  /** Brings the store back to what the file says, and names what can be known about the failed transaction. */
  #afterFailure(error: unknown, attempted: string, committing: boolean): StoreError {
    // A full disk shows when pages are written, before the frame that would make the commit count (sqlite.org/wal.html).
    const unknown = committing && sqliteCode(error) !== 'SQLITE_FULL';
    const failure = toStoreError(error, attempted, this.#path, unknown ? 'unknown' : 'none');
    this.#log.error('transaction failed', {
      attempted,
      code: failure.code,
      outcome: failure.outcome,
      cause: describeError(error),
    });
    if (!this.#connection) return failure;
    let trusted = !unknown && !breaksConnection(error);
    try {
      if (trusted) this.#connection?.rollback();
    } catch (rollbackError) {
      this.#log.error('rollback failed', { cause: describeError(rollbackError) });
      trusted = false;
    }
    if (!trusted) this.#reopen();
    return failure;
  }

  /**
   * Never goes on with a connection whose fsync failed: the kernel may have dropped the pages and call the next fsync a
   * success (lwn.net/Articles/752063). Opening reads the file anew, and writes and syncs what it found in the log.
   */
  #reopen(): void {
    const broken = this.#connection;
    this.#connection = null;
    try {
      broken?.close();
    } catch (error) {
      this.#log.warn('closing a broken connection failed', { cause: describeError(error) });
    }
    try {
      this.#connected();
    } catch (error) {
      this.#log.error('store cannot be opened again; it is tried anew with each request', {
        cause: describeError(error),
      });
    }
  }

  #connected(): Connection {
    if (this.#connection) return this.#connection;
    const connection = connect(this.#path, openSound(this.#path));
    this.#readState(connection);
    this.#connection = connection;
    this.#log.info('store opened again', { revision: this.#revision });
    this.#tail.wakeAll();
    return connection;
  }

  #readState(connection: Connection): void {
    const { revision, compacted } = connection.readState();
    this.#revision = revision;
    this.#compactedBefore = compacted;
  }

  #read(prefix: string, after: Revision): { events: readonly WatchEvent[]; through: Revision } {
    if (after + 1 < this.#compactedBefore) throw new Compacted(this.#compactedBefore);
    if (after >= this.#revision) return { events: [], through: after };
    return this.#use(`watch of "${prefix}"`, (connection) => connection.history(prefix, after, watchLimits));
  }

  #use<T>(attempted: string, run: (connection: Connection) => T): T {
    this.#assertOpen(attempted);
    try {
      return run(this.#connected());
    } catch (error) {
      const failure = toStoreError(error, attempted, this.#path);
      this.#log.error('request failed', { attempted, code: failure.code, cause: describeError(error) });
      throw failure;
    }
  }

  #assertOpen(attempted: string): void {
    if (this.#closed) throw new StoreError('Closed', `${attempted} refused: the store was closed`);
  }
}
