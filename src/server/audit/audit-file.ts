// One open file of an audit log. It is only appended to; what was not written to its end is cut off again.

import {
  closeSync,
  fdatasync,
  fdatasyncSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  statSync,
  writeSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { fileNameOf } from './audit-folder.ts';

/** The calls that fail when a disk does: an argument, for tests. */
export interface AuditDisk {
  /** Writes all of it, or throws. */
  write(fd: number, bytes: Uint8Array): void;
  /** Resolves when what was written is durable. */
  sync(fd: number): Promise<void>;
}

export const systemDisk: AuditDisk = {
  write(fd, bytes) {
    for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at);
  },
  sync: (fd) =>
    new Promise((resolve, reject) => fdatasync(fd, (error) => (error === null ? resolve() : reject(error)))),
};

export class AuditFile {
  readonly path: string;
  readonly firstSeq: number;
  readonly #fd: number;
  readonly #disk: AuditDisk;
  #bytes: number;
  /** A write has failed half way, and it could not be cut. */
  #mayBeLonger = false;

  private constructor(at: { path: string; firstSeq: number; fd: number; bytes: number; disk: AuditDisk }) {
    this.path = at.path;
    this.firstSeq = at.firstSeq;
    this.#fd = at.fd;
    this.#disk = at.disk;
    this.#bytes = at.bytes;
  }

  /** A new file, whose name is durable. */
  static create(directory: string, firstSeq: number, disk: AuditDisk): AuditFile {
    const path = join(directory, fileNameOf(firstSeq));
    const fd = openSync(path, 'ax', 0o600);
    syncFolder(directory);
    return new AuditFile({ path, firstSeq, fd, bytes: 0, disk });
  }

  /** Continues a file, without what it has beyond `bytes`. */
  static reopen(path: string, { firstSeq, bytes }: { firstSeq: number; bytes: number }, disk: AuditDisk): AuditFile {
    const fd = openSync(path, 'a');
    if (fstatSync(fd).size > bytes) ftruncateSync(fd, bytes);
    return new AuditFile({ path, firstSeq, fd, bytes, disk });
  }

  get name(): string {
    return basename(this.path);
  }

  /** Of whole lines. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Throws when not all of it was written; then the file is as before, or is cut at the next write. */
  write(text: string): void {
    const bytes = Buffer.from(text);
    if (this.#mayBeLonger) this.truncate(this.#bytes);
    try {
      this.#disk.write(this.#fd, bytes);
    } catch (error) {
      this.#mayBeLonger = true;
      this.truncate(this.#bytes);
      throw error;
    }
    this.#bytes += bytes.length;
  }

  /** Cuts off what is beyond. */
  truncate(bytes: number): void {
    if (fstatSync(this.#fd).size > bytes) ftruncateSync(this.#fd, bytes);
    this.#bytes = bytes;
    this.#mayBeLonger = false;
  }

  sync(): Promise<void> {
    return this.#disk.sync(this.#fd);
  }

  syncNow(): void {
    fdatasyncSync(this.#fd);
  }

  /** Why it is not the file that this process has written; undefined: it is. */
  whyNotOurs(): string | undefined {
    const { nlink, ino, size } = fstatSync(this.#fd);
    if (nlink === 0) return 'it was deleted';
    const there = statSync(this.path, { throwIfNoEntry: false });
    if (there === undefined) return 'it was renamed';
    if (there.ino !== ino) return 'another file has its name';
    return size < this.#bytes ? 'its end was cut off' : undefined;
  }

  close(): void {
    closeSync(this.#fd);
  }
}

/** Makes new and removed names durable. */
export function syncFolder(directory: string): void {
  const fd = openSync(directory, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
