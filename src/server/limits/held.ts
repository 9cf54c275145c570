// How many of something each principal holds at a time, and how many it may.

export class Held {
  readonly #held = new Map<string, number>();

  /** One more; the caller releases it once. Undefined: `key` holds `max` already. */
  take(key: string, max: number): (() => void) | undefined {
    const held = this.#held.get(key) ?? 0;
    if (held >= max) return undefined;
    this.#held.set(key, held + 1);
    let released = false;
    return () => {
      if (released) return;
      released = true;
      const left = (this.#held.get(key) ?? 1) - 1;
      if (left > 0) this.#held.set(key, left);
      else this.#held.delete(key);
    };
  }

  count(key: string): number {
    return this.#held.get(key) ?? 0;
  }
}
