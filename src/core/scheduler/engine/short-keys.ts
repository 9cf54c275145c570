// Short keys: in the place of long texts that are looked up for every decision. Equal texts have equal keys as long as they are
// remembered; different ones never have.

/**
 * Of those lately used. One that is in use is never forgotten: that needs as many others between two uses. Else two that are alike would
 * not be known for alike, at a moment that hangs on all that the process did before.
 */
const keptMax = 8_192;

export class ShortKeys {
  readonly #prefix: string;
  #keys = new Map<string, string>();
  /** Those of before, until they are used again. */
  #older: ReadonlyMap<string, string> = new Map();
  #given = 0;

  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  of(text: string): string {
    let key = this.#keys.get(text);
    if (key === undefined) {
      key = this.#older.get(text) ?? this.#prefix + String(this.#given++);
      if (this.#keys.size >= keptMax) {
        this.#older = this.#keys;
        this.#keys = new Map();
      }
      this.#keys.set(text, key);
    }
    return key;
  }
}
