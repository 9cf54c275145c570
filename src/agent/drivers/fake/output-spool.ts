// One stream of output, of which a guest keeps what the agent has not acknowledged.

import { dataBytesMax } from '../../runner/protocol.ts';

export class OutputSpool {
  #offset = 0;
  #kept: Buffer = Buffer.alloc(0);

  get keptBytes(): number {
    return this.#kept.length;
  }

  /** Where the added bytes begin. */
  add(bytes: Uint8Array): number {
    const at = this.#offset + this.#kept.length;
    this.#kept = Buffer.concat([this.#kept, bytes]);
    return at;
  }

  /** Drops what is below `offset`. */
  acknowledge(offset: number): void {
    const count = Math.min(Math.max(0, offset - this.#offset), this.#kept.length);
    this.#kept = this.#kept.subarray(count);
    this.#offset += count;
  }

  /** All that is kept, in pieces that fit into a frame. */
  *pieces(): Generator<{ readonly offset: number; readonly bytes: Uint8Array }> {
    for (let at = 0; at < this.#kept.length; at += dataBytesMax)
      yield { offset: this.#offset + at, bytes: this.#kept.subarray(at, at + dataBytesMax) };
  }
}
