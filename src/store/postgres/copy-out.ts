// The result of a statement as bytes: COPY in PostgreSQL's binary format. The client reads rows as text only, in which
// each byte of a value takes two letters to send and decode. It reads, and never writes.

import type { Client, Connection, Submittable } from 'pg';
import { StoreError } from '../store.ts';

/**
 * Resolves with the result of `statement`, which takes no parameters: see `CopiedRows`. Rejects with the client's
 * error.
 */
export function copyOut(client: Client, statement: string): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    client.query(
      new CopyOut(`COPY (${statement}) TO STDOUT (FORMAT binary)`, (error, bytes) => {
        if (error) reject(error);
        else resolve(bytes);
      }),
    );
  });
}

/** `PGCOPY` and five bytes that detect a conversion as text, then flags, none of which is set. */
const headBytes = 15;
/** In place of the number of fields. */
const ending = -1;
const bytesFirst = 64 * 1024;

/** Iterates over the result: over each row, then over its fields in order. Throws `StoreError` when it is cut off. */
export class CopiedRows {
  readonly #copied: Buffer;
  #at: number;

  constructor(copied: Buffer) {
    this.#copied = copied;
    this.#at = headBytes;
    this.#at = this.#skip(this.#length());
  }

  /** False after the last row. */
  next(): boolean {
    return this.#copied.readInt16BE(this.#skip(2) - 2) !== ending;
  }

  /** ASCII. */
  text(): string | null {
    const length = this.#length();
    if (length < 0) return null;
    const end = this.#skip(length);
    return this.#copied.toString('latin1', end - length, end);
  }

  /** A view. */
  bytes(): Uint8Array | null {
    const length = this.#length();
    if (length < 0) return null;
    const end = this.#skip(length);
    return new Uint8Array(this.#copied.buffer, this.#copied.byteOffset + end - length, length);
  }

  /** A 64-bit integer that fits a double. */
  integer(): number {
    const end = this.#skip(Math.max(0, this.#length()));
    return this.#copied.readInt32BE(end - 8) * 2 ** 32 + this.#copied.readUInt32BE(end - 4);
  }

  /** Of the next field; negative: null. */
  #length(): number {
    return this.#copied.readInt32BE(this.#skip(4) - 4);
  }

  /** Returns the previous position. */
  #skip(length: number): number {
    this.#at += length;
    if (this.#at > this.#copied.byteLength) throw new StoreError('Unavailable', 'what PostgreSQL answered is cut off');
    return this.#at;
  }
}

/** A query in the client's own form: the client calls it with the server's messages. */
class CopyOut implements Submittable {
  /** The client replaces this by its own function, which calls this one, to enforce the time limit. */
  callback: (error: Error | null, copied: Buffer) => void;
  readonly #text: string;
  #bytes: Buffer;
  #length = 0;

  constructor(text: string, callback: CopyOut['callback']) {
    this.callback = callback;
    this.#text = text;
    this.#bytes = Buffer.allocUnsafeSlow(bytesFirst);
  }

  submit(connection: Connection): void {
    connection.query(this.#text);
  }

  /** A copy: the client reuses the memory for the next pieces. */
  handleCopyData({ chunk }: { readonly chunk: Buffer }): void {
    const length = this.#length + chunk.byteLength;
    if (length > this.#bytes.byteLength) {
      const larger = Buffer.allocUnsafeSlow(Math.max(length, 2 * this.#bytes.byteLength));
      larger.set(this.#bytes.subarray(0, this.#length));
      this.#bytes = larger;
    }
    this.#bytes.set(chunk, this.#length);
    this.#length = length;
  }

  handleCommandComplete(): void {
    // Success is known when the server is ready again.
  }

  handleError(error: Error): void {
    this.callback(error, this.#bytes);
  }

  handleReadyForQuery(): void {
    this.callback(null, this.#bytes.subarray(0, this.#length));
  }
}
