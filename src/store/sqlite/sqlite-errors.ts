// SQLite's result codes as store errors: what failed, on which file, what the user can do.

import { statSync } from 'node:fs';
import Database from 'better-sqlite3';
import { describeError } from '../../base/log.ts';
import { StoreError } from '../store.ts';

/** `SQLITE_FULL`, `SQLITE_IOERR_FSYNC`, …; the empty string for errors that are not SQLite's. */
export function sqliteCode(error: unknown): string {
  return error instanceof Database.SqliteError ? error.code : '';
}

export function isBusy(error: unknown): boolean {
  return /^SQLITE_(BUSY|LOCKED)/.test(sqliteCode(error));
}

/** Errors after which the connection's view of the file is not reliable. */
export function breaksConnection(error: unknown): boolean {
  return !/^SQLITE_(FULL|TOOBIG|CONSTRAINT|RANGE|MISMATCH)/.test(sqliteCode(error));
}

export function toStoreError(
  error: unknown,
  attempted: string,
  path: string,
  outcome: 'none' | 'unknown' = 'none',
): StoreError {
  if (error instanceof StoreError) return error;
  const code = sqliteCode(error);
  const what = `${attempted} failed on ${path}: ${describeError(error)}${code ? ` (${code})` : ''}`;
  const options = { cause: error, outcome };
  // SHMSIZE: no room for the 32 KiB beside the file that checking it needs.
  if (code === 'SQLITE_FULL' || code === 'SQLITE_IOERR_SHMSIZE')
    return new StoreError(
      'Full',
      `${what}; free space on its file system; the store then continues by itself`,
      options,
    );
  if (/^SQLITE_(CORRUPT|NOTADB)/.test(code)) return corrupt(path, what, options);
  if (isBusy(error))
    return new StoreError('Locked', `${what}; another program has the file open: stop that one first`, options);
  const unsure = outcome === 'unknown' ? '; the commit may or may not have happened: read before trying again' : '';
  return new StoreError(
    'Unavailable',
    `${what}${unsure}; look at the disk (dmesg) and at the file's permissions`,
    options,
  );
}

export function corrupt(
  path: string,
  found: string,
  options: { cause?: unknown; outcome?: 'none' | 'unknown' } = {},
): StoreError {
  const files = [path, `${path}-wal`].filter((file) => bytesOf(file) > 0);
  const keep =
    files.length > 1
      ? `keep a copy of ${files.join(' and ')}, move both away, and put a backup in their place`
      : `keep a copy of ${files[0] ?? path}, move it away, and put a backup in its place`;
  const wayBack = `Nothing was changed. Stop the server, ${keep} with: ${restoreTo(path)}; without one, a sqlite3 that has .recover may salvage what is readable`;
  return new StoreError('Corrupt', `${path} is damaged: ${found}. ${wayBack}`, options);
}

/**
 * To SQLite an empty file is a new database; a store is created aside and renamed, so an empty file has lost its
 * content, or never was a store.
 */
export function empty(path: string): StoreError {
  return new StoreError(
    'Corrupt',
    `${path} is empty (0 bytes), as Berth never leaves it. Nothing was changed. If there was a store in it, remove it, and put a backup in its place with: ${restoreTo(path)}; if there was none, remove it, and a new store can be made there`,
  );
}

function restoreTo(path: string): string {
  return `berth restore FILE --store sqlite:${path}`;
}

function bytesOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
