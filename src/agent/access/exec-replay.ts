// The latest output of a command, kept so that a client which comes back continues at the byte where it was. It is bounded:
// output that was sent long ago is dropped, and the command waits while too much of it is unsent.

import { execStreams } from '../../api/access-protocol.ts';
import type { ExecOutput } from '../drivers/access.ts';

interface Piece {
  readonly fromByte: number;
  readonly toByte: number;
  /** The byte that names the stream, then the data. */
  readonly message: Uint8Array;
}

/** One message; small enough for a terminal to stay responsive during a flood. */
const pieceBytesMax = 64 * 1024;

export class ExecReplay {
  readonly #bytesMax: number;
  readonly #pieces: Piece[] = [];
  #dropped = 0; // pieces; a reader counts pieces from the first one ever, because the front may be dropped while it waits
  #writtenBytes = 0;
  #sentBytes = 0; // output that a client was sent at least once
  #changed = Promise.withResolvers<void>();
  #wakeWriter = (): void => {};

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Bytes of output so far. */
  get writtenBytes(): number {
    return this.#writtenBytes;
  }

  get firstByte(): number {
    return this.#pieces[0]?.fromByte ?? this.#writtenBytes;
  }

  /** Resolves at the next `wakeReaders`. */
  get changed(): Promise<void> {
    return this.#changed.promise;
  }

  push({ stream, data }: ExecOutput): void {
    for (let at = 0; at < data.length; at += pieceBytesMax) {
      const part = data.subarray(at, at + pieceBytesMax);
      const message = new Uint8Array(1 + part.length);
      message[0] = execStreams[stream];
      message.set(part, 1);
      const toByte = this.#writtenBytes + part.length;
      this.#pieces.push({ fromByte: this.#writtenBytes, toByte, message });
      this.#writtenBytes = toByte;
    }
    this.trim();
    this.wakeReaders();
  }

  /** Waits until so much was sent that more may be pushed, or `ended` is aborted and `wakeWriter` called. */
  async room(ended: AbortSignal): Promise<void> {
    while (this.#writtenBytes - this.#sentBytes >= this.#bytesMax && !ended.aborted)
      await new Promise<void>((resolve) => {
        this.#wakeWriter = resolve;
      });
  }

  /** Drops what was sent long ago. That has arrived: far less than the replay is ever in transit. */
  trim(): void {
    while (this.#pieces[0] !== undefined && this.#pieces[0].toByte <= this.#sentBytes - this.#bytesMax) {
      this.#pieces.shift();
      this.#dropped += 1;
    }
  }

  /** Returns a function that takes the next message after `fromByte`; undefined: there is none yet. */
  readerAt(fromByte: number): () => { readonly message: Uint8Array; readonly toByte: number } | undefined {
    let next = fromByte;
    let number = this.#dropped;
    return () => {
      for (;;) {
        const piece = this.#pieces[number - this.#dropped];
        if (piece === undefined) return undefined;
        number += 1;
        if (piece.toByte <= next) continue;
        const message = restOf(piece, next);
        next = piece.toByte;
        return { message, toByte: piece.toByte };
      }
    };
  }

  noteSent(toByte: number): void {
    this.#sentBytes = Math.max(this.#sentBytes, toByte);
    this.wakeWriter();
  }

  wakeReaders(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }

  wakeWriter(): void {
    this.#wakeWriter();
  }
}

/** The part of a piece after byte `next`, with the byte that names the stream. */
function restOf({ fromByte, message }: Piece, next: number): Uint8Array {
  if (next <= fromByte) return message;
  const rest = message.slice(next - fromByte);
  rest[0] = message[0] ?? 0;
  return rest;
}
