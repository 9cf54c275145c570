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
  /** For each request, the deleted keys that did not exist: they make no event. */
  readonly absent: readonly { readonly request: number; readonly key: Key }[];
}

/** The state of the file: the last revision, and the first one whose events are still stored. */
export interface FileState {
  readonly revision: Revision;
  readonly compacted: Revision;
}

export type Tell = (level: 'info' | 'warn' | 'error', message: string, fields: Record<string, unknown>) => void;

/** Entries per transaction: it takes some milliseconds, and commits wait that long. */
const portionSize = 500;
/**
 * With this many unapplied changes, entries are written after every commit and not only when the store is idle. Changes beyond that, as
 * in a burst, are held in memory, some 600 bytes each; a key that changes several times meanwhile is written to the table once.
 */
const unappliedUsual = 50_000;
/** With this many, entries are written while commits wait. After a crash as many are read from the log: 0.9 s. */
const unappliedMax = 300_000;
/** The write-ahead log is moved into the file after this many changes: it takes some 2 ms, and commits wait. With 8,000 it took up to 15 ms. */
const changesPerCheckpoint = 2_000;

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
  /** The revision up to which the table of entries has followed the log, according to the file. */
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

  /** Each request sees the ones before it; a request whose condition fails writes nothing. Durable when it returns. */
  commit(requests: readonly CommitRequest[]): BatchResult {
    while (this.#unapplied.changes > unappliedMax && this.settle());
    let revision = 0;
    const absent: { request: number; key: Key }[] = [];
    const written: { revision: Revision; changes: readonly Write[] }[] = [];
    /** Revisions from the requests before the current one. */
    const pending = new Map<Key, Revision>();
    const reads = requests.every(({ writes }) => writes.length === 0);
    const results = this.#transact('commit', { durable: true, reads }, (connection) => {
      ({ revision } = this.state); // read here, because a broken connection may just have been opened again
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

  /** Whether deferred work should not wait until the store is idle. */
  get pressing(): boolean {
    return (
      this.#unapplied.changes >= unappliedUsual ||
      this.#unapplied.inRound ||
      this.#changesSinceCheckpoint >= changesPerCheckpoint
    );
  }

  /** Does some deferred work; returns false when there is none, or it cannot be done now. */
  settle(): boolean {
    try {
      return this.#checkpoint() || this.#apply();
    } catch {
      return false; // logged before; the log of the store has all changes
    }
  }

  #checkpoint(): boolean {
    if (this.#changesSinceCheckpoint < changesPerCheckpoint) return false;
    this.#changesSinceCheckpoint = 0; // also after a failure: the next attempt follows after as many changes
    try {
      this.#connected().checkpoint();
    } catch (error) {
      // Its fsync may be the first for data that was written without one.
      throw this.#afterFailure(error, 'moving the write-ahead log into the file', true);
    }
    return true;
  }

  #apply(): boolean {
    const portion = this.#unapplied.portion(portionSize);
    if (!portion) return false;
    // The log has them; the fsync of the next commit or checkpoint makes them durable.
    this.#transact('writing entries', { durable: false }, (connection) => {
      for (const { key, value, revision } of portion.entries) connection.writeEntry(key, value, revision);
      if (portion.through !== undefined) connection.writeApplied(portion.through);
    });
    this.#applied = portion.through ?? this.#applied;
    this.#unapplied.applied(portion.entries);
    this.#changesSinceCheckpoint += portion.entries.length;
    return true;
  }

  /** Applies some of the log below `before` to the entries; returns false when all of it is applied. */
  follow(before: Revision): boolean {
    return this.#applied < before - 1 && this.#apply();
  }

  /** Marks the history below `before` as removed. */
  setCompacted(before: Revision): void {
    while (this.follow(before)); // the log may be removed only up to where the entries have followed it
    this.#transact('compaction', { durable: true }, (connection) => connection.writeCompacted(before));
    this.state = { ...this.state, compacted: before };
  }

  /** Removes some of the history marked so; returns false when none is left. */
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

  /** Reads the state of the file, and takes changes that its entries lack from its log. */
  #load(connection: Connection): FileState {
    const { revision, compacted, applied } = connection.readState();
    this.#unapplied.clear();
    this.#applied = applied;
    for (let through = applied; through < revision; ) {
      const read = connection.history('', through, { revisions: 1_000, bytes: 8 * 1024 * 1024 });
      // Complete revisions, in the order of writing.
      for (const [written, events] of Map.groupBy(read.events, (event) => event.revision))
        this.#unapplied.add(events, written);
      if (read.through === through) throw corrupt(this.#path, `table log ends at revision ${through} of ${revision}`);
      through = read.through;
    }
    return { revision, compacted };
  }

  /** Durable when it returns, if requested; throws a `StoreError` that says whether the outcome is known. */
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

  /** Resets the store to the state of the file, and determines the outcome of the failed transaction if possible. */
  #afterFailure(error: unknown, attempted: string, committing: boolean): StoreError {
    // A full disk is noticed when pages are written, before the frame that completes the commit (sqlite.org/wal.html).
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
   * Never continues with a connection whose fsync failed: the kernel may have dropped the pages and report the next fsync as a
   * success (lwn.net/Articles/752063). Opening reads the file again, and writes and syncs what the log has.
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
      this.#tell('error', 'store cannot be opened again; every request retries', {
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
    this.#files.check(); // otherwise a new store would be created, or another one used
    const connection = this.#connect(openSound(this.#path));
    this.#files.noteConnected();
    this.state = this.#load(connection);
    this.#connection = connection;
    this.#tell('info', 'store opened again', { revision: this.state.revision });
    return connection;
  }
}
