// Room on the disk that is kept for the last lines: when the disk is full, changes that are under way can still be logged.

import { closeSync, fdatasyncSync, openSync, rmSync, statSync, writeSync } from 'node:fs';
import { join } from 'node:path';

export class AuditReserve {
  readonly #path: string;
  readonly #bytes: number;
  #kept = false;

  constructor(directory: string, bytes: number) {
    this.#path = join(directory, 'reserve');
    this.#bytes = bytes;
  }

  get isKept(): boolean {
    return this.#kept;
  }

  /** Throws when the disk has no room for it. */
  keep(): void {
    if (statSync(this.#path, { throwIfNoEntry: false })?.size !== this.#bytes) {
      const fd = openSync(this.#path, 'w', 0o600);
      try {
        const piece = Buffer.alloc(Math.min(this.#bytes, 1 << 20));
        for (let left = this.#bytes; left > 0; ) left -= writeSync(fd, piece, 0, Math.min(left, piece.length));
        fdatasyncSync(fd);
      } catch (error) {
        rmSync(this.#path, { force: true });
        throw error;
      } finally {
        closeSync(fd);
      }
    }
    this.#kept = true;
  }

  /** Frees the room; false when there was none. */
  release(): boolean {
    if (!this.#kept) return false;
    rmSync(this.#path, { force: true });
    this.#kept = false;
    return true;
  }
}
