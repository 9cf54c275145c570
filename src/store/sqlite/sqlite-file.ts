// Opens a store file, or creates one. Every problem of a file is found here, before the first read; a refused file is
// left byte for byte unchanged.

import {
  chmodSync,
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { dirname } from 'node:path';
import Database from 'better-sqlite3';
import { StoreError } from '../store.ts';
import { checksumOf } from './checksum.ts';
import { corrupt, empty, sqliteCode, toStoreError } from './sqlite-errors.ts';

/** "Brth": tells these files from those of other programs. */
const applicationId = 0x42727468;

/** 2: entries follow the log; `applied` says how far. */
const schemaVersion = 2;

/** Needed only while another program reads the file. */
const waitMsMax = 200;

/**
 * A row of a table by key stays in its page up to a quarter of that (sqlite.org/fileformat2.html, 1.6): 2,030 bytes
 * with this size, 1,002 with SQLite's default of 4,096, where an instance of 1,000 bytes needed a second page. A file
 * keeps its page size.
 */
const pageBytes = 8_192;

// meta: `schema`, `revision` (the last), `compacted` (history below it is deleted), `applied` (the entries have
// followed the log up to here, and may contain some later changes). log: one row per revision, see event-codec.ts.
const schema = `
  CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE entries (
    key TEXT PRIMARY KEY, value BLOB NOT NULL, revision INTEGER NOT NULL, checksum INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE log (revision INTEGER PRIMARY KEY, events BLOB NOT NULL, checksum INTEGER NOT NULL) STRICT;
  INSERT INTO meta (name, value) VALUES ('schema', ${schemaVersion}), ('revision', 0), ('compacted', 1), ('applied', 0);
`;

/**
 * From 3.7.0 to 3.51.2 a checkpoint could race with a write and damage the file (sqlite.org/wal.html, "WAL-reset bug").
 */
const sqliteVersionMin = [3, 51, 3] as const;

export interface FileOptions {
  readonly path: string;
  /** Files up to this size are checked in full, at about 500 MB/s; larger ones at their ends only. */
  readonly fullCheckBytesMax: number;
}

export interface OpenedFile {
  readonly db: Database.Database;
  /**
   * On a full disk: moves the write-ahead log into the file, which must succeed before the first write. Throws SQLite's
   * errors.
   */
  readonly owed?: () => void;
}

/** The caller holds the file's lock. */
export function openFile({ path, fullCheckBytesMax }: FileOptions): OpenedFile {
  checkSqliteVersion();
  if (!existsSync(path)) createFile(path);
  try {
    inspect(path, fullCheckBytesMax);
  } catch (error) {
    if (!(error instanceof StoreError) || error.code !== 'Full') throw error;
    // A read-only connection needs 32 KiB beside the file for its index; the store's own connection has that in memory.
    // Damaged content may then be moved from the log into the file, which is better than an unreadable fleet.
    return openSound(path, (db) => check(db, path, fullCheckBytesMax));
  }
  return openSound(path);
}

/** Opens a file that this process had open before, or has just inspected. */
export function openSound(path: string, checkFirst: (db: Database.Database) => void = () => {}): OpenedFile {
  let db: Database.Database | undefined;
  try {
    db = new Database(path, { fileMustExist: true, timeout: waitMsMax });
    setPragmas(db, path);
    checkFirst(db);
    const owed = moveLog.bind(undefined, db, path);
    const moved = movesLog(owed);
    upgrade(db);
    return moved ? { db } : { db, owed };
  } catch (error) {
    db?.close();
    throw toStoreError(error, 'opening the store', path);
  }
}

/** After a failed fsync, what recovery read may be in the page cache only: this writes and syncs it again. */
function moveLog(db: Database.Database, path: string): void {
  const busy = db.prepare<[], { busy: number }>('PRAGMA wal_checkpoint(TRUNCATE)').get()?.busy;
  if (busy !== 0) throw new StoreError('Locked', `another program reads ${path}; stop it first`);
}

/** False on a full disk: the content can still be read. */
function movesLog(move: () => void): boolean {
  try {
    move();
    return true;
  } catch (error) {
    if (sqliteCode(error) !== 'SQLITE_FULL') throw error;
    return false;
  }
}

/** From schema 1, whose entries were written together with the log. */
function upgrade(db: Database.Database): void {
  db.exec(`BEGIN IMMEDIATE;
    INSERT OR IGNORE INTO meta (name, value) SELECT 'applied', value FROM meta WHERE name = 'revision';
    UPDATE meta SET value = ${schemaVersion} WHERE name = 'schema' AND value < ${schemaVersion};
    COMMIT;`);
}

/**
 * Through a read-only connection, because closing a writable one would move the write-ahead log into a damaged file.
 */
function inspect(path: string, fullCheckBytesMax: number): void {
  checkHeader(path, bytesOf(`${path}-wal`));
  let db: Database.Database | undefined;
  try {
    db = new Database(path, { fileMustExist: true, readonly: true, timeout: waitMsMax });
    check(db, path, fullCheckBytesMax);
  } catch (error) {
    throw toStoreError(error, 'checking the store', path);
  } finally {
    db?.close();
    rmSync(`${path}-shm`, { force: true }); // a read-only connection leaves its index of the log behind
  }
}

function check(db: Database.Database, path: string, fullCheckBytesMax: number): void {
  const full = bytesOf(path) + bytesOf(`${path}-wal`) <= fullCheckBytesMax;
  if (full) checkStructure(db, path);
  checkSchemaVersion(db, path);
  checkContent(db, path, full);
}

export function makeFolderOf(path: string): void {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  } catch (error) {
    throw toStoreError(error, 'making the folder of the store', path);
  }
}

/** Created aside and renamed, so that an existing file is always complete: an empty one has lost its content. */
function createFile(path: string): void {
  if (existsSync(`${path}-wal`))
    throw corrupt(
      path,
      `it is missing, but its write-ahead log ${path}-wal is there; one of the two was moved or removed`,
    );
  const newPath = `${path}.new`;
  for (const stale of [newPath, `${newPath}-wal`, `${newPath}-journal`]) rmSync(stale, { force: true });
  try {
    const db = new Database(newPath);
    chmodSync(newPath, 0o600);
    db.pragma(`page_size = ${pageBytes}`);
    db.pragma('synchronous = FULL');
    db.pragma(`application_id = ${applicationId}`);
    db.exec(`BEGIN; ${schema} COMMIT;`);
    db.pragma('journal_mode = WAL');
    db.close();
    renameSync(newPath, path);
    const folder = openSync(dirname(path), 'r');
    fsyncSync(folder);
    closeSync(folder);
  } catch (error) {
    throw toStoreError(error, 'making a new store', path);
  }
}

function checkSqliteVersion(): void {
  const db = new Database(':memory:');
  const version = db.prepare<[], { version: string }>('SELECT sqlite_version() AS version').get()?.version ?? '0';
  db.close();
  const found = version.split('.').map(Number);
  for (const [i, wanted] of sqliteVersionMin.entries()) {
    if ((found[i] ?? 0) > wanted) return;
    if ((found[i] ?? 0) < wanted)
      throw new StoreError(
        'Unavailable',
        `SQLite ${version} can damage its files; Berth needs ${sqliteVersionMin.join('.')} or newer: run npm ci to get the right better-sqlite3`,
      );
  }
}

/**
 * Checks the first page as bytes: SQLite itself would change the file. Field offsets: sqlite.org/fileformat2.html, 1.3.
 */
function checkHeader(path: string, walBytes: number): void {
  const header = readHeader(path);
  if (header.byteLength === 0) throw walBytes === 0 ? empty(path) : corrupt(path, 'it is empty (0 bytes)');
  if (!'SQLite format 3\0'.startsWith(header.toString('latin1', 0, 16)))
    throw new StoreError(
      'Invalid',
      `${path} is not a SQLite file (its first bytes differ); give Berth another file. Nothing was changed. If it was a store of Berth's, move it away, and put a backup in its place with: berth restore FILE --store sqlite:${path}`,
    );
  if (header.byteLength < 100) throw corrupt(path, `it is cut off inside its header, at byte ${header.byteLength}`);
  const application = header.readUInt32BE(68);
  if (application !== applicationId)
    throw new StoreError(
      'Invalid',
      `${path} is a SQLite database of another program (application id ${application}); give Berth another file`,
    );
  const pageBytes = header.readUInt16BE(16) === 1 ? 65536 : header.readUInt16BE(16);
  const wanted = header.readUInt32BE(28) * pageBytes;
  const found = bytesOf(path);
  // While the log has frames, the last pages may exist there only.
  if (walBytes === 0 && found < wanted) throw corrupt(path, `it is cut off at byte ${found} of ${wanted}`);
}

function readHeader(path: string): Buffer {
  try {
    const file = openSync(path, 'r');
    try {
      const bytes = Buffer.alloc(100);
      return bytes.subarray(0, readSync(file, bytes, 0, 100, 0));
    } finally {
      closeSync(file);
    }
  } catch (error) {
    throw toStoreError(error, 'reading the store', path);
  }
}

function setPragmas(db: Database.Database, path: string): void {
  // Exclusive mode keeps the WAL's index in this process's memory: no second program, no shared-memory file that could
  // fail on a full disk.
  const wanted: readonly (readonly [string, string | number, string | number])[] = [
    ['locking_mode', 'EXCLUSIVE', 'exclusive'],
    ['journal_mode', 'WAL', 'wal'],
    ['synchronous', 'FULL', 2],
    ['mmap_size', 0, 0],
    ['journal_size_limit', 64 * 1024 * 1024, 64 * 1024 * 1024],
    // Far above the point where the writer moves the log into the file itself, when it is idle.
    ['wal_autocheckpoint', 65_536, 65_536],
    // 16 MiB: frequently rewritten pages often fit, and pages read once at a start do not stay. Beyond it the system's
    // own cache is used.
    ['cache_size', -16_384, -16_384],
  ];
  for (const [name, set, expected] of wanted) {
    db.pragma(`${name} = ${set}`);
    const found = db.pragma(name, { simple: true });
    if (found !== expected && !(name === 'mmap_size' && found === undefined))
      throw new StoreError(
        'Unavailable',
        `${path} cannot be made durable: SQLite answers ${name}=${String(found)} instead of ${expected}; use a local file system`,
      );
  }
}

/** Names tree, page and cell of the first damage; beyond it SQLite's own walk may fail. */
function checkStructure(db: Database.Database, path: string): void {
  const fault = db.prepare<[], { quick_check: string }>('PRAGMA quick_check(1)').get()?.quick_check;
  if (fault !== 'ok') throw corrupt(path, fault === undefined ? 'quick_check has no answer' : onOneLine(fault));
}

/** SQLite starts with a line that names the database of the connection; here there is only one. */
function onOneLine(fault: string): string {
  return fault
    .replace(/^\*\*\* in database main \*\*\*/, '')
    .trim()
    .replaceAll(/\s*\n\s*/g, '; ');
}

function checkSchemaVersion(db: Database.Database, path: string): void {
  const found = db.prepare<[], { value: number }>(`SELECT value FROM meta WHERE name = 'schema'`).get()?.value;
  if (found === undefined) throw corrupt(path, 'table meta has no row "schema"');
  if (found > schemaVersion)
    throw new StoreError(
      'Invalid',
      `${path} was written by a newer Berth (schema ${found}, this one knows ${schemaVersion}); start that version, or restore a backup made by this one`,
    );
}

function checkContent(db: Database.Database, path: string, full: boolean): void {
  if (full) checkRows(db, path);
  const meta = db.prepare<[string], { value: number }>('SELECT value FROM meta WHERE name = ?');
  const [revision, compacted] = ['revision', 'compacted'].map((name) => meta.get(name)?.value);
  if (revision === undefined || compacted === undefined)
    throw corrupt(path, `table meta has no row "${revision === undefined ? 'revision' : 'compacted'}"`);
  const last = db.prepare<[], { last: number | null }>('SELECT max(revision) AS last FROM log').get()?.last ?? null;
  const wantedLast = compacted > revision ? null : revision;
  if (wantedLast === null ? last !== null && last > revision : last !== wantedLast)
    throw corrupt(path, `table log ends at revision ${last}, but the store is at ${revision}`);
  if (!full) return;
  const rows = db
    .prepare<[number], { n: number }>('SELECT count(*) AS n FROM log WHERE revision >= ?')
    .get(compacted)?.n;
  if (rows !== revision - compacted + 1)
    throw corrupt(
      path,
      `table log holds ${rows} of the ${revision - compacted + 1} revisions ${compacted} to ${revision}`,
    );
}

/** SQLite checks its own structure; only the store's checksums detect a flipped bit inside a value. */
function checkRows(db: Database.Database, path: string): void {
  const entries = db.prepare<[], { key: string; value: Buffer; revision: number; checksum: number }>(
    'SELECT key, value, revision, checksum FROM entries',
  );
  for (const { key, value, revision, checksum } of entries.iterate()) {
    if (checksumOf(key, revision, value) !== checksum)
      throw corrupt(path, `the value of key "${key}", written at revision ${revision}, has a wrong checksum`);
  }
  const log = db.prepare<[], { revision: number; events: Buffer; checksum: number }>(
    'SELECT revision, events, checksum FROM log',
  );
  for (const { revision, events, checksum } of log.iterate()) {
    if (checksumOf('', revision, events) !== checksum)
      throw corrupt(path, `the events of revision ${revision} in table log have a wrong checksum`);
  }
}

function bytesOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
