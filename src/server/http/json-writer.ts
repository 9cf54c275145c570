// JSON writer: puts JSON text together as bytes, so that stored JSON is copied without being parsed. It checks nothing: the caller must give it
// pieces that make JSON.

import { schemaVersion } from '../../core/state/upgrade.ts';

/** A resource is stored with revision 0, the first number of its metadata: names and ids hold no quotes. */
const storedHead = new RegExp(
  `^\\{"kind":"[A-Za-z]+","schemaVersion":${schemaVersion},"metadata":\\{"id":"[^"\\\\]*","name":"[^"\\\\]*","project":"[^"\\\\]*","revision":(?=0,)`,
  'y',
);

/** Maximum length of that head: an id, a name and a project of 128 characters each. */
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

  /** Writes a stored resource as users see it, with the revision that wrote it. Returns false, and writes nothing, for an old form. */
  resource(stored: Uint8Array, revision: number): boolean {
    const digits = String(revision);
    this.#reserve(stored.byteLength + digits.length);
    // The rest moves by the extra length of the revision over its 0; then the head is written again in its place.
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

  /** Returns everything written. Ends the use of the writer. */
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
