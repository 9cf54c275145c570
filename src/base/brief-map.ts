// A Map for what soon goes again. A Map that shrinks, or is freed of what went, moves into another table, and the old one points there:
// once one of them is old, V8 keeps all that come after it, and everything that ever was in them, until the next full collection. This
// one begins anew instead, so that what went leaves nothing behind. Not for what is there in hundreds of thousands: it is copied at once.

/** So many that went are borne before a copy without them is made, and as many more as are there. */
const goneMax = 32;

export class BriefMap<K, V extends object | string | number | boolean> {
  #map = new Map<K, V | undefined>();
  /** How many keys stand for what went. */
  #gone = 0;

  get size(): number {
    return this.#map.size - this.#gone;
  }

  get(key: K): V | undefined {
    return this.#map.get(key);
  }

  has(key: K): boolean {
    return this.#map.get(key) !== undefined;
  }

  set(key: K, value: V): void {
    // What comes again comes last, as in any Map.
    if (this.#gone > 0 && this.#map.get(key) === undefined && this.#map.delete(key)) this.#gone -= 1;
    this.#map.set(key, value);
  }

  delete(key: K): boolean {
    if (this.#map.get(key) === undefined) return false;
    this.#map.set(key, undefined);
    this.#gone += 1;
    const { size } = this;
    if (size === 0 || this.#gone > goneMax + size) this.#beginAnew();
    return true;
  }

  #beginAnew(): void {
    const left = new Map<K, V>();
    if (this.size > 0) for (const [key, value] of this) left.set(key, value);
    this.#map = left;
    this.#gone = 0;
  }

  /** The first set first. What comes or goes meanwhile may be among them or not. */
  *[Symbol.iterator](): Generator<[K, V]> {
    for (const [key, value] of this.#map) if (value !== undefined) yield [key, value];
  }

  *keys(): Generator<K> {
    for (const [key, value] of this.#map) if (value !== undefined) yield key;
  }

  *values(): Generator<V> {
    for (const value of this.#map.values()) if (value !== undefined) yield value;
  }
}
