// One process per store file: an open write transaction on `<path>.lock`, held while the store is open. The kernel
// holds the lock, so it ends with the process, even after a crash. The lock file stays; deleting it would allow a
// second process.

import Database from 'better-sqlite3';
import { system } from '../../base/system.ts';
import { StoreError } from '../store.ts';
import { isBusy, sqliteCode, toStoreError } from './sqlite-errors.ts';

export interface FileLock {
  release(): void;
}

/** Needed only when two processes start at the same instant. */
const waitMsMax = 200;

export function lockFile(path: string): FileLock {
  const lockPath = `${path}.lock`;
  const db = openLock(path, lockPath);
  try {
    // A RESERVED lock excludes other writers and still lets them read who holds it.
    db.exec('BEGIN IMMEDIATE');
    writeHolder(db);
  } catch (error) {
    const holder = isBusy(error) ? holderOf(db) : undefined;
    db.close();
    if (isBusy(error))
      throw new StoreError('Locked', `store ${path} is in use by ${holder ?? 'another process'}; stop that one first`, {
        cause: error,
      });
    if (/^SQLITE_(CORRUPT|NOTADB)/.test(sqliteCode(error)))
      throw new StoreError(
        'Unavailable',
        `${lockPath} is not a lock file of Berth; if no other Berth uses ${path}, remove ${lockPath} and start again`,
        { cause: error },
      );
    throw toStoreError(error, 'taking the lock beside the store', path);
  }
  return { release: () => db.close() };
}

function openLock(path: string, lockPath: string): Database.Database {
  try {
    return new Database(lockPath, { timeout: waitMsMax });
  } catch (error) {
    throw toStoreError(error, `opening ${lockPath}`, path);
  }
}

/** Ends with the lock held again. On a full disk the holder's name is not written: that must not prevent a restart. */
function writeHolder(db: Database.Database): void {
  try {
    db.exec('CREATE TABLE IF NOT EXISTS holder (pid INTEGER NOT NULL)');
    db.exec('DELETE FROM holder');
    db.prepare<[number]>('INSERT INTO holder (pid) VALUES (?)').run(system.pid());
    db.exec('COMMIT');
  } catch (error) {
    if (sqliteCode(error) !== 'SQLITE_FULL') throw error;
    if (db.inTransaction) db.exec('ROLLBACK');
  }
  db.exec('BEGIN IMMEDIATE');
}

function holderOf(db: Database.Database): string | undefined {
  try {
    const row = db.prepare<[], { pid: number }>('SELECT pid FROM holder').get();
    if (!row) return undefined;
    return row.pid === system.pid() ? `this same process (pid ${row.pid})` : `process ${row.pid}`;
  } catch {
    return undefined; // the holder is just writing its first line; the lock itself was detected
  }
}
