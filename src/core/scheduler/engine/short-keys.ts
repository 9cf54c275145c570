// Short keys replace long texts that are looked up for every decision. Equal texts have equal keys as long as they are
// remembered; different texts never share a key.

/**
 * Number of recent keys kept. A key in use is never dropped: that would need this many other keys between two uses.
 * Otherwise two equal texts could get different keys, depending on everything the process did before.
 */
const keptMax = 8_192;

export class ShortKeys {
  readonly #prefix: string;
  #keys = new Map<string, string>();
  /** The previous generation, kept until its keys are used again. */
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
