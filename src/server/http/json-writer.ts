// JSON text put together as bytes, so that what the store holds as JSON is neither read nor written out again. It checks nothing:
// whoever calls it knows that the pieces make JSON.

import { schemaVersion } from '../../core/state/upgrade.ts';

/** A resource is stored with revision 0, the first number of its metadata: names and ids hold no quotes. */
const storedHead = new RegExp(
  `^\\{"kind":"[A-Za-z]+","schemaVersion":${schemaVersion},"metadata":\\{"id":"[^"\\\\]*","name":"[^"\\\\]*","project":"[^"\\\\]*","revision":(?=0,)`,
  'y',
);

/** Where that head ends at the latest: an id, a name and a project of 128 characters each. */
const headBytesMax = 512;

export class JsonWriter {
  #bytes: Buffer;
  #length = 0;

  constructor(bytesExpected: number) {
    this.#bytes = Buffer.allocUnsafe(bytesExpected);
  }

  text(text: string): void {
    this.#reserve(3 * text.length); // UTF-8 takes at most three bytes for one unit of UTF-16
    this.#length += this.#bytes.write(text, this.#length);
  }

  /** A resource as the store holds it, as users see it: with the revision that wrote it. False, and nothing written, for an old form. */
  resource(stored: Uint8Array, revision: number): boolean {
    const digits = String(revision);
    this.#reserve(stored.byteLength + digits.length);
    // Moved on by what the revision is longer than its 0; then the head is written over what it left in its old place.
    const moved = this.#length + digits.length - 1;
    this.#bytes.set(stored, moved);
    storedHead.lastIndex = 0;
    if (!storedHead.test(this.#bytes.toString('latin1', moved, moved + Math.min(stored.byteLength, headBytesMax))))
      return false;
    const headLength = storedHead.lastIndex;
    this.#bytes.copyWithin(this.#length, moved, moved + headLength);
    this.#bytes.write(digits, this.#length + headLength, 'latin1');
    this.#length = moved + stored.byteLength;
    return true;
  }

  /** All that was written; the writer is done then. */
  take(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  #reserve(more: number): void {
    if (this.#length + more <= this.#bytes.byteLength) return;
    const larger = Buffer.allocUnsafe(Math.max(2 * this.#bytes.byteLength, this.#length + more));
    larger.set(this.take());
    this.#bytes = larger;
  }
}
