// The statements of the store on one open file: rows in, rows out, each row checked. It knows no queue and no watcher.

import type Database from 'better-sqlite3';
import { type Change, decodeEvents, encodeEvents } from '../event-codec.ts';
import type { Entry, Key, Revision, WatchEvent } from '../store.ts';
import { checksumOf } from './checksum.ts';
import { corrupt } from './sqlite-errors.ts';

interface EntryRow {
  readonly key: Key;
  readonly value: Buffer;
  readonly revision: Revision;
  readonly checksum: number;
}

interface LogRow {
  readonly revision: Revision;
  readonly events: Buffer;
  readonly checksum: number;
}

export class Connection {
  readonly #path: string;
  readonly #db: Database.Database;
  readonly #statements: ReturnType<typeof prepare>;
  #synced = true;

  constructor(path: string, db: Database.Database) {
    this.#path = path;
    this.#db = db;
    this.#statements = prepare(db);
  }

  /** A transaction that is not `durable` becomes durable with the next one that is, and before the file is written (sqlite.org/wal.html). */
  begin(durable: boolean): void {
    // Never prepared: this pragma acts when it is compiled (sqlite.org/pragma.html).
    if (durable !== this.#synced) this.#db.exec(`PRAGMA synchronous = ${durable ? 'FULL' : 'NORMAL'}`);
    this.#synced = durable;
    this.#statements.begin.run();
  }

  commit(): void {
    this.#statements.commit.run();
  }

  /** Undoes the transaction, if SQLite has not done so already. */
  rollback(): void {
    if (this.#db.inTransaction) this.#statements.rollback.run();
  }

  /** The last revision, the first one whose events are still stored, and the one up to which the table of entries has followed the log. */
  readState(): { readonly revision: Revision; readonly compacted: Revision; readonly applied: Revision } {
    const { readMeta } = this.#statements;
    return {
      revision: readMeta.get('revision')?.value ?? 0,
      compacted: readMeta.get('compacted')?.value ?? 1,
      applied: readMeta.get('applied')?.value ?? 0,
    };
  }

  writeRevision(revision: Revision): void {
    this.#statements.writeMeta.run(revision, 'revision');
  }

  writeCompacted(before: Revision): void {
    this.#statements.writeMeta.run(before, 'compacted');
  }

  writeApplied(revision: Revision): void {
    this.#statements.writeMeta.run(revision, 'applied');
  }

  get(key: Key): Entry | null {
    const row = this.#statements.readEntry.get(key);
    return row ? this.#toEntry(row) : null;
  }

  /** Keys from `start` to below `end`; a `limit` of -1 is none. */
  range(start: string, end: string, limit: number): Entry[] {
    return this.#statements.readRange.all(start, end, limit).map((row) => this.#toEntry(row));
  }

  /** The revision at which this key was last written, according to the table; 0: it is not there. */
  revisionOf(key: Key): Revision {
    return this.#statements.readRevision.get(key) ?? 0;
  }

  appendLog(revision: Revision, changes: readonly Change[]): void {
    const events = encodeEvents(changes);
    this.#statements.appendLog.run(revision, events, checksumOf('', revision, events));
  }

  writeEntry(key: Key, value: Uint8Array | null, revision: Revision): void {
    if (value === null) this.#statements.deleteEntry.run(key);
    else this.#statements.putEntry.run(key, value, revision, checksumOf(key, revision, value));
  }

  /** Moves the content of the write-ahead log into the file. */
  checkpoint(): void {
    this.#statements.checkpoint.get();
  }

  /** The events of the revisions above `after` until one of the limits is passed; see `History.read`. */
  history(
    prefix: string,
    after: Revision,
    limits: { readonly revisions: number; readonly bytes: number },
  ): { events: WatchEvent[]; through: Revision } {
    const events: WatchEvent[] = [];
    let through = after;
    let bytes = 0;
    for (const row of this.#statements.readLog.iterate(after, limits.revisions)) {
      if (row.revision !== through + 1)
        throw corrupt(this.#path, `table log goes from revision ${through} to ${row.revision}`);
      if (checksumOf('', row.revision, row.events) !== row.checksum)
        throw corrupt(this.#path, `the events of revision ${row.revision} in table log have a wrong checksum`);
      for (const event of decodeEvents(row.events, row.revision, prefix)) events.push(event);
      through = row.revision;
      bytes += row.events.byteLength;
      if (bytes >= limits.bytes) break;
    }
    return { events, through };
  }

  /** Removes at most `count` revisions of history below `before`, durably. Returns false when none is left. */
  forget(before: Revision, count: number): boolean {
    const first = this.#statements.firstLog.get()?.first ?? null;
    if (first === null || first >= before) return false;
    this.#statements.deleteLog.run(Math.min(before, first + count));
    return true;
  }

  /** Releases the file even when SQLite cannot write to it any more. */
  close(): void {
    this.#db.close();
  }

  #toEntry({ key, value, revision, checksum }: EntryRow): Entry {
    if (checksumOf(key, revision, value) !== checksum)
      throw corrupt(this.#path, `the value of key "${key}", written at revision ${revision}, has a wrong checksum`);
    return { key, value: new Uint8Array(value.buffer, value.byteOffset, value.byteLength), revision };
  }
}

function prepare(db: Database.Database) {
  return {
    begin: db.prepare('BEGIN IMMEDIATE'),
    commit: db.prepare('COMMIT'),
    rollback: db.prepare('ROLLBACK'),
    readMeta: db.prepare<[string], { value: number }>('SELECT value FROM meta WHERE name = ?'),
    writeMeta: db.prepare<[number, string]>('UPDATE meta SET value = ? WHERE name = ?'),
    readEntry: db.prepare<[Key], EntryRow>('SELECT key, value, revision, checksum FROM entries WHERE key = ?'),
    readRevision: db.prepare<[Key], Revision>('SELECT revision FROM entries WHERE key = ?').pluck(),
    readRange: db.prepare<[string, string, number], EntryRow>(
      'SELECT key, value, revision, checksum FROM entries WHERE key >= ? AND key < ? ORDER BY key LIMIT ?',
    ),
    putEntry: db.prepare<[Key, Uint8Array, Revision, number]>(
      `INSERT INTO entries (key, value, revision, checksum) VALUES (?, ?, ?, ?)
       ON CONFLICT (key) DO UPDATE SET value = excluded.value, revision = excluded.revision, checksum = excluded.checksum`,
    ),
    deleteEntry: db.prepare<[Key]>('DELETE FROM entries WHERE key = ?'),
    appendLog: db.prepare<[Revision, Buffer, number]>('INSERT INTO log (revision, events, checksum) VALUES (?, ?, ?)'),
    readLog: db.prepare<[Revision, number], LogRow>(
      'SELECT revision, events, checksum FROM log WHERE revision > ? ORDER BY revision LIMIT ?',
    ),
    firstLog: db.prepare<[], { first: Revision | null }>('SELECT min(revision) AS first FROM log'),
    checkpoint: db.prepare('PRAGMA wal_checkpoint(PASSIVE)'),
    deleteLog: db.prepare<[Revision]>('DELETE FROM log WHERE revision < ?'),
  };
}
