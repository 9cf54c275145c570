// Short keys: in the place of long texts that are looked up for every decision. Equal texts have equal keys as long as they are
// remembered; different ones never have.

/** Requests bring texts of their own: forgetting costs only that equal ones are not known for equal for a while. */
const keptMax = 16_384;

export class ShortKeys {
  readonly #prefix: string;
  readonly #keys = new Map<string, string>();
  #given = 0;

  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  of(text: string): string {
    let key = this.#keys.get(text);
    if (key === undefined) {
      if (this.#keys.size >= keptMax) this.#keys.clear();
      this.#keys.set(text, (key = this.#prefix + String(this.#given++)));
    }
    return key;
  }
}
