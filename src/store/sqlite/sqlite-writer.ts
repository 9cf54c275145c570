// The writing side of the embedded store: one connection, one transaction and one fsync for each batch of commits. A commit appends
// to the log; the table of entries follows in `settle`, and after a crash from the log. It is called from one thread only, blocks it
// while the disk works, and must never answer from a failed transaction.

import { describeError } from '../../base/log.ts';
import {
  type CommitResult,
  type Condition,
  type Entry,
  type Key,
  type Revision,
  type StoreError,
  type Write,
} from '../store.ts';
import { FilesInPlace } from './files-in-place.ts';
import { Connection } from './sqlite-connection.ts';
import { breaksConnection, corrupt, sqliteCode, toStoreError } from './sqlite-errors.ts';
import { type OpenedFile, openFile, openSound } from './sqlite-file.ts';
import { UnappliedEntries } from './unapplied.ts';

export interface CommitRequest {
  readonly conditions: readonly Condition[];
  readonly writes: readonly Write[];
}

export interface BatchResult {
  readonly results: readonly CommitResult[];
  /** Of each request that deleted what was not there: the keys, which make no event. */
  readonly absent: readonly { readonly request: number; readonly key: Key }[];
}

/** What the file says: the last revision, and the first whose events are still there. */
export interface FileState {
  readonly revision: Revision;
  readonly compacted: Revision;
}

export type Tell = (level: 'info' | 'warn' | 'error', message: string, fields: Record<string, unknown>) => void;

/** One transaction of entries: some milliseconds, for commits wait that long. */
const portionSize = 500;
/**
 * So many changes are not left for a quiet moment: a portion follows every commit then. Where commits bring more than that, as in a burst,
 * they are held in memory, some 600 bytes each; what is written again meanwhile is written to the table once.
 */
const unappliedUsual = 50_000;
/** From here on entries are written although commits wait. As many are read from the log after a crash: 0.9 s. */
const unappliedMax = 300_000;
/**
 * Nor is the write-ahead log left to grow beyond so many changes: moving it into the file takes some 15 ms then, for which commits wait.
 * In a quiet moment it is moved from the lower number on.
 */
const changesPerCheckpoint = 8_000;
const changesPerQuietCheckpoint = 2_000;

export class SqliteWriter {
  readonly #path: string;
  readonly #tell: Tell;
  readonly #files: FilesInPlace;
  /** null after a failure that left the connection in doubt, until the file can be opened again. */
  #connection: Connection | null;
  /** See `OpenedFile`. */
  #owed: (() => void) | undefined;
  readonly #unapplied = new UnappliedEntries();
  #changesSinceCheckpoint = 0;
  /** Up to here the file says that the entries have followed the log. */
  #applied: Revision = 0;
  state: FileState;

  /** The caller holds the file's lock. Throws `StoreError` for a file that cannot be opened. */
  constructor(options: { path: string; fullCheckBytesMax: number; tell: Tell }) {
    this.#path = options.path;
    this.#tell = options.tell;
    this.#connection = this.#connect(openFile(options));
    this.#files = new FilesInPlace(options.path);
    this.#files.noteConnected();
    this.state = this.#load(this.#connection);
  }

  /** Each request sees those before it; one whose condition fails has written nothing. Durable when it returns. */
  commit(requests: readonly CommitRequest[]): BatchResult {
    while (this.#unapplied.changes > unappliedMax && this.settle());
    let revision = 0;
    const absent: { request: number; key: Key }[] = [];
    const written: { revision: Revision; changes: readonly Write[] }[] = [];
    /** Of the requests before the one at work. */
    const pending = new Map<Key, Revision>();
    const reads = requests.every(({ writes }) => writes.length === 0);
    const results = this.#transact('commit', { durable: true, reads }, (connection) => {
      ({ revision } = this.state); // now: a connection that was broken may just have been opened again
      const revisionOf = (key: Key): Revision => pending.get(key) ?? this.#revisionOf(connection, key);
      const answers = requests.map(({ conditions, writes }, request): CommitResult => {
        const failed = conditions.find(({ key, ifRevision }) => revisionOf(key) !== ifRevision);
        if (failed) return { ok: false, key: failed.key };
        const changes = writes.filter(({ key, value }) => {
          if (value !== null || revisionOf(key) !== 0) return true;
          absent.push({ request, key });
          return false;
        });
        if (changes.length === 0) return { ok: true, revision };
        revision++;
        connection.appendLog(revision, changes);
        if (request + 1 < requests.length)
          for (const { key, value } of changes) pending.set(key, value === null ? 0 : revision);
        written.push({ revision, changes });
        return { ok: true, revision };
      });
      if (revision > this.state.revision) connection.writeRevision(revision);
      return answers;
    });
    for (const { revision, changes } of written) {
      this.#unapplied.add(changes, revision);
      this.#changesSinceCheckpoint += changes.length;
    }
    this.state = { ...this.state, revision };
    return { results, absent };
  }

  get(key: Key): Entry | null {
    return this.read(`get of "${key}"`, (connection) => {
      const { value, revision } = this.#unapplied.get(key) ?? {};
      if (value === undefined || revision === undefined) return connection.get(key);
      return value === null ? null : { key, value: new Uint8Array(value), revision };
    });
  }

  list(prefix: string, range: { start: string; end: string; limit: number }): Entry[] {
    return this.read(`list of "${prefix}"`, (connection) => {
      const { start, end, limit } = range;
      const stored = connection.range(start, end, limit < 0 ? limit : limit + this.#unapplied.size);
      return this.#unapplied.size === 0 ? stored : this.#unapplied.over(stored, range);
    });
  }

  read<T>(attempted: string, run: (connection: Connection) => T): T {
    try {
      return run(this.#connected());
    } catch (error) {
      const failure = toStoreError(error, attempted, this.#path);
      this.#tell('error', 'request failed', { attempted, code: failure.code, cause: describeError(error) });
      throw failure;
    }
  }

  /** Whether some of what can be done later should not wait until it is quiet. */
  get pressing(): boolean {
    return (
      this.#unapplied.changes >= unappliedUsual ||
      this.#unapplied.inRound ||
      this.#changesSinceCheckpoint >= changesPerCheckpoint
    );
  }

  /** Does some of what can be done later; false when there is nothing to do, or it cannot be done now. */
  settle(): boolean {
    try {
      return this.#checkpoint(changesPerCheckpoint) || this.#apply() || this.#checkpoint(changesPerQuietCheckpoint);
    } catch {
      return false; // told already; the log holds it all
    }
  }

  #checkpoint(changesMin: number): boolean {
    if (this.#changesSinceCheckpoint < changesMin) return false;
    this.#changesSinceCheckpoint = 0; // also when it fails: the next try is worth as many changes
    try {
      this.#connected().checkpoint();
    } catch (error) {
      // Its fsync may be the first of what was written without one.
      throw this.#afterFailure(error, 'moving the write-ahead log into the file', true);
    }
    return true;
  }

  #apply(): boolean {
    const portion = this.#unapplied.portion(portionSize);
    if (!portion) return false;
    // The log holds them: that they are durable is the business of the next commit's fsync, or of the next checkpoint's.
    this.#transact('writing entries', { durable: false }, (connection) => {
      for (const { key, value, revision } of portion.entries) connection.writeEntry(key, value, revision);
      if (portion.through !== undefined) connection.writeApplied(portion.through);
    });
    this.#applied = portion.through ?? this.#applied;
    this.#unapplied.applied(portion.entries);
    this.#changesSinceCheckpoint += portion.entries.length;
    return true;
  }

  /** A step towards entries that have followed the log up to below `before`; false when they have. */
  follow(before: Revision): boolean {
    return this.#applied < before - 1 && this.#apply();
  }

  /** History below `before` counts as gone. */
  setCompacted(before: Revision): void {
    while (this.follow(before)); // the log may go only as far as the entries have followed it
    this.#transact('compaction', { durable: true }, (connection) => connection.writeCompacted(before));
    this.state = { ...this.state, compacted: before };
  }

  /** Removes some of what is below; false when nothing is left of it. */
  forget(before: Revision, count: number): boolean {
    return this.#transact('compaction', { durable: true }, (connection) => connection.forget(before, count));
  }

  close(): void {
    while (this.#connection && this.settle());
    const connection = this.#connection;
    this.#connection = null;
    connection?.close();
  }

  #revisionOf(connection: Connection, key: Key): Revision {
    const unapplied = this.#unapplied.get(key);
    if (unapplied) return unapplied.value === null ? 0 : unapplied.revision;
    return connection.revisionOf(key);
  }

  /** What the file says, with what its entries lack taken from its log. */
  #load(connection: Connection): FileState {
    const { revision, compacted, applied } = connection.readState();
    this.#unapplied.clear();
    this.#applied = applied;
    for (let through = applied; through < revision; ) {
      const read = connection.history('', through, { revisions: 1_000, bytes: 8 * 1024 * 1024 });
      // Whole revisions, as they were written.
      for (const [written, events] of Map.groupBy(read.events, (event) => event.revision))
        this.#unapplied.add(events, written);
      if (read.through === through) throw corrupt(this.#path, `table log ends at revision ${through} of ${revision}`);
      through = read.through;
    }
    return { revision, compacted };
  }

  /** Durable when it returns, if asked to be; throws a `StoreError` that says what is known of the outcome. */
  #transact<T>(
    attempted: string,
    { durable, reads = false }: { durable: boolean; reads?: boolean },
    work: (connection: Connection) => T,
  ): T {
    if (durable) this.#files.check();
    let committing = false;
    try {
      const connection = this.#connected();
      if (!reads) this.#payOwed();
      connection.begin(durable);
      const result = work(connection);
      committing = true;
      connection.commit();
      return result;
    } catch (error) {
      throw this.#afterFailure(error, attempted, committing);
    }
  }

  /** Brings the store back to what the file says, and names what can be known about the failed transaction. */
  #afterFailure(error: unknown, attempted: string, committing: boolean): StoreError {
    // A full disk shows when pages are written, before the frame that would make the commit count (sqlite.org/wal.html).
    const unknown = committing && sqliteCode(error) !== 'SQLITE_FULL';
    const failure = toStoreError(error, attempted, this.#path, unknown ? 'unknown' : 'none');
    this.#tell('error', 'transaction failed', {
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
      this.#tell('error', 'rollback failed', { cause: describeError(rollbackError) });
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
    this.#files.noteClosed();
    try {
      broken?.close();
    } catch (error) {
      this.#tell('warn', 'closing a broken connection failed', { cause: describeError(error) });
    }
    try {
      this.#connected();
    } catch (error) {
      this.#tell('error', 'store cannot be opened again; it is tried anew with each request', {
        cause: describeError(error),
      });
    }
  }

  #connect({ db, owed }: OpenedFile): Connection {
    this.#owed = owed;
    if (owed)
      this.#tell(
        'error',
        'the file system of the store is full: it can be read, and is written again when there is room',
        {
          path: this.#path,
        },
      );
    return new Connection(this.#path, db);
  }

  #payOwed(): void {
    this.#owed?.();
    this.#owed = undefined;
  }

  #connected(): Connection {
    if (this.#connection) return this.#connection;
    this.#files.check(); // else another store would be made, or taken for this one
    const connection = this.#connect(openSound(this.#path));
    this.#files.noteConnected();
    this.state = this.#load(connection);
    this.#connection = connection;
    this.#tell('info', 'store opened again', { revision: this.state.revision });
    return connection;
  }
}
