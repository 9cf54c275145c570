// Reads the bytes of bodies whose sender is not known yet: each up to a limit, and the large ones within one budget of memory.

import { Readable } from 'node:stream';
import { ApiError } from '../../../api/errors.ts';
import { mebibyte } from '../../../base/bytes.ts';

/** As GitHub caps its payloads. */
export const bodyBytesMax = 25 * mebibyte;
/** Most are below 50 KiB. A body up to this size needs no place in the budget, so that large ones cannot keep it out. */
const smallBytesMax = mebibyte / 4;
/** For two of the largest. */
const budgetBytes = 2 * bodyBytesMax;

export class BoundedBodies {
  #heldBytes = 0;

  /** The body, and what `use` makes of it; the memory is free again afterwards. */
  async read<T>(
    body: unknown,
    { length, use }: { readonly length: string | undefined; readonly use: (bytes: Buffer) => Promise<T> },
  ): Promise<T> {
    if (!isBytes(body)) throw new ApiError('UnsupportedMediaType', 'the body must be application/json');
    if (Number(length ?? 0) > bodyBytesMax) throw tooLarge();
    const place = { heldBytes: 0 };
    try {
      return await use(await this.#collect(body, place));
    } finally {
      this.#heldBytes -= place.heldBytes;
    }
  }

  async #collect(body: AsyncIterable<Uint8Array>, place: { heldBytes: number }): Promise<Buffer> {
    const pieces: Uint8Array[] = [];
    let bytes = 0;
    for await (const piece of whileItLasts(body)) {
      bytes += piece.byteLength;
      if (bytes > bodyBytesMax) throw tooLarge();
      if (bytes > smallBytesMax) this.#hold(piece.byteLength, place);
      pieces.push(piece);
    }
    return Buffer.concat(pieces);
  }

  #hold(bytes: number, place: { heldBytes: number }): void {
    if (this.#heldBytes + bytes > budgetBytes)
      throw new ApiError('TooManyRequests', 'too many large webhooks at once; deliver it again later');
    this.#heldBytes += bytes;
    place.heldBytes += bytes;
  }
}

function tooLarge(): ApiError {
  return new ApiError('PayloadTooLarge', `the body is over ${bodyBytesMax} bytes`);
}

function isBytes(body: unknown): body is AsyncIterable<Uint8Array> {
  return typeof body === 'object' && body !== null && Symbol.asyncIterator in body;
}

/** A client that goes away is no fault of ours. */
async function* whileItLasts(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    // The rest of a body that is refused is discarded, so that its sender can read why: its connection must stay open.
    yield* body instanceof Readable ? body.iterator({ destroyOnReturn: false }) : body;
  } catch (cause) {
    throw new ApiError('InvalidRequest', 'the connection broke', { field: 'body', cause });
  }
}
