// The statements of the store on one open file: rows in, rows out, each checked. It knows no queue and no watcher.

import type Database from 'better-sqlite3';
import type { Entry, Key, Revision, WatchEvent } from '../store.ts';
import { checksumOf } from './checksum.ts';
import { type Change, decodeEvents, encodeEvents } from '../event-codec.ts';
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

export type Connection = ReturnType<typeof connect>;

export function connect(path: string, db: Database.Database) {
  const begin = db.prepare('BEGIN IMMEDIATE');
  let synced = true;
  const commit = db.prepare('COMMIT');
  const rollback = db.prepare('ROLLBACK');
  const readMeta = db.prepare<[string], { value: number }>('SELECT value FROM meta WHERE name = ?');
  const writeMeta = db.prepare<[number, string]>('UPDATE meta SET value = ? WHERE name = ?');
  const readEntry = db.prepare<[Key], EntryRow>('SELECT key, value, revision, checksum FROM entries WHERE key = ?');
  const readRevision = db.prepare<[Key], Revision>('SELECT revision FROM entries WHERE key = ?').pluck();
  const readRange = db.prepare<[string, string, number], EntryRow>(
    'SELECT key, value, revision, checksum FROM entries WHERE key >= ? AND key < ? ORDER BY key LIMIT ?',
  );
  const putEntry = db.prepare<[Key, Uint8Array, Revision, number]>(
    `INSERT INTO entries (key, value, revision, checksum) VALUES (?, ?, ?, ?)
     ON CONFLICT (key) DO UPDATE SET value = excluded.value, revision = excluded.revision, checksum = excluded.checksum`,
  );
  const deleteEntry = db.prepare<[Key]>('DELETE FROM entries WHERE key = ?');
  const appendLog = db.prepare<[Revision, Buffer, number]>(
    'INSERT INTO log (revision, events, checksum) VALUES (?, ?, ?)',
  );
  const readLog = db.prepare<[Revision, number], LogRow>(
    'SELECT revision, events, checksum FROM log WHERE revision > ? ORDER BY revision LIMIT ?',
  );
  const firstLog = db.prepare<[], { first: Revision | null }>('SELECT min(revision) AS first FROM log');
  const checkpoint = db.prepare('PRAGMA wal_checkpoint(PASSIVE)');
  const deleteLog = db.prepare<[Revision]>('DELETE FROM log WHERE revision < ?');

  const toEntry = ({ key, value, revision, checksum }: EntryRow): Entry => {
    if (checksumOf(key, revision, value) !== checksum)
      throw corrupt(path, `the value of key "${key}", written at revision ${revision}, has a wrong checksum`);
    return { key, value: new Uint8Array(value.buffer, value.byteOffset, value.byteLength), revision };
  };

  return {
    path,
    /** What `commit` ends then is durable with it, or else with the next that is, and before the file is written (sqlite.org/wal.html). */
    begin(durable: boolean): void {
      // Never prepared: this pragma acts when it is compiled (sqlite.org/pragma.html).
      if (durable !== synced) db.exec(`PRAGMA synchronous = ${durable ? 'FULL' : 'NORMAL'}`);
      synced = durable;
      begin.run();
    },
    commit: () => void commit.run(),
    /** Undoes what `begin` began, if SQLite has not done so already. */
    rollback(): void {
      if (db.inTransaction) rollback.run();
    },
    /** The last revision, the first whose events are still there, and up to where the table of entries has followed the log. */
    readState: (): { revision: Revision; compacted: Revision; applied: Revision } => ({
      revision: readMeta.get('revision')?.value ?? 0,
      compacted: readMeta.get('compacted')?.value ?? 1,
      applied: readMeta.get('applied')?.value ?? 0,
    }),
    writeRevision: (revision: Revision) => void writeMeta.run(revision, 'revision'),
    writeCompacted: (before: Revision) => void writeMeta.run(before, 'compacted'),
    writeApplied: (revision: Revision) => void writeMeta.run(revision, 'applied'),

    get(key: Key): Entry | null {
      const row = readEntry.get(key);
      return row ? toEntry(row) : null;
    },
    /** Keys from `start` to below `end`; a `limit` of -1 is none. */
    range: (start: string, end: string, limit: number): Entry[] => readRange.all(start, end, limit).map(toEntry),

    /** When the table says that this key was last written; 0: it is not there. */
    revisionOf: (key: Key): Revision => readRevision.get(key) ?? 0,

    appendLog(revision: Revision, changes: readonly Change[]): void {
      const events = encodeEvents(changes);
      appendLog.run(revision, events, checksumOf('', revision, events));
    },

    writeEntry(key: Key, value: Uint8Array | null, revision: Revision): void {
      if (value === null) deleteEntry.run(key);
      else putEntry.run(key, value, revision, checksumOf(key, revision, value));
    },

    /** Moves what the write-ahead log holds into the file. */
    checkpoint: () => void checkpoint.get(),

    /** The events of the revisions above `after` until one of the limits is passed; see `History.read`. */
    history(
      prefix: string,
      after: Revision,
      limits: { readonly revisions: number; readonly bytes: number },
    ): { events: WatchEvent[]; through: Revision } {
      const events: WatchEvent[] = [];
      let through = after;
      let bytes = 0;
      for (const row of readLog.iterate(after, limits.revisions)) {
        if (row.revision !== through + 1)
          throw corrupt(path, `table log goes from revision ${through} to ${row.revision}`);
        if (checksumOf('', row.revision, row.events) !== row.checksum)
          throw corrupt(path, `the events of revision ${row.revision} in table log have a wrong checksum`);
        for (const event of decodeEvents(row.events, row.revision, prefix)) events.push(event);
        through = row.revision;
        bytes += row.events.byteLength;
        if (bytes >= limits.bytes) break;
      }
      return { events, through };
    },

    /** Removes at most `count` revisions of history below `before`, durably. False when none is left. */
    forget(before: Revision, count: number): boolean {
      const first = firstLog.get()?.first ?? null;
      if (first === null || first >= before) return false;
      deleteLog.run(Math.min(before, first + count));
      return true;
    },

    /** Releases the file even when SQLite cannot write to it any more. */
    close: () => void db.close(),
  };
}
