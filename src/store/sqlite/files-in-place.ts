// Whether the files of an open store are still where they were. Somebody may remove or replace them, and SQLite would go on writing into
// files that no name leads to any more: all of it would be gone with the process.

import { statSync } from 'node:fs';
import { StoreError } from '../store.ts';

export class FilesInPlace {
  readonly #path: string;
  readonly #log: string;
  readonly #known = new Map<string, string>();

  /** The store at `path` is open, and its lock is held. */
  constructor(path: string) {
    this.#path = path;
    this.#log = `${path}-wal`;
    for (const file of [path, `${path}.lock`]) this.#known.set(file, identityOf(file));
  }

  /** Each connection has a write-ahead log of its own. */
  noteConnected(): void {
    this.#known.set(this.#log, identityOf(this.#log));
  }

  /** SQLite removes the log then. */
  noteClosed(): void {
    this.#known.delete(this.#log);
  }

  /** Throws `StoreError` `Unavailable` when a file is not the one that was opened; the files that are open can still be read. */
  check(): void {
    for (const [file, identity] of this.#known) if (identityOf(file) !== identity) throw moved(this.#path, file);
  }
}

/** Of a file, whatever its name is; of none, too. A fixed number of system calls: some microseconds. */
function identityOf(file: string): string {
  const found = statSync(file, { throwIfNoEntry: false });
  return found === undefined ? 'none' : `${found.dev} ${found.ino}`;
}

function moved(path: string, file: string): StoreError {
  return new StoreError(
    'Unavailable',
    `${file} was removed or replaced while the store ${path} was in use; nothing more is written. What was written can still be read: ` +
      'put the file back, or make a backup of the running server (berth backup FILE), stop it, and restore that',
  );
}
