// Checks that the files of an open store are still in their place. If they are deleted or replaced, SQLite keeps
// writing to files without a name, and everything written is lost with the process.

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

  /** Each connection has its own write-ahead log. */
  noteConnected(): void {
    this.#known.set(this.#log, identityOf(this.#log));
  }

  /** SQLite deletes the log then. */
  noteClosed(): void {
    this.#known.delete(this.#log);
  }

  /** Throws `StoreError` `Unavailable` when a file is not the one that was opened; the open files can still be read. */
  check(): void {
    for (const [file, identity] of this.#known) if (identityOf(file) !== identity) throw moved(this.#path, file);
  }
}

/**
 * Identifies a file independently of its name; also for a missing one. A fixed number of system calls: some
 * microseconds.
 */
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
