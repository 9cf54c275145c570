// A Map for short-lived entries. A Map that shrinks, or drops deleted entries, moves to another table, to which the old
// one points: once an old table is in V8's old generation, it keeps all later ones alive, with everything ever stored
// in them, until the next full collection. This one copies its entries to a new Map instead, so that deleted entries
// leave nothing behind. Not for hundreds of thousands of entries, which are copied at once.

/** Tombstones allowed before the map is compacted, plus the number of live entries. */
const goneMax = 32;

export class BriefMap<K, V extends object | string | number | boolean> {
  #map = new Map<K, V | undefined>();
  /** Number of tombstones. */
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
    // A key that is set again comes last, as in any Map.
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

  /** In insertion order. Entries added or deleted during iteration may or may not appear. */
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
