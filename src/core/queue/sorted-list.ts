// Sorted list: items in a total order, mostly added at the end and taken from the front. It never holds an item twice.

/** Taken items at the front are removed from the array when they are this many and more than half. */
const frontMin = 64;

export class SortedList<T> {
  readonly #compare: (a: T, b: T) => number;
  #items: T[] = [];
  #front = 0;

  /** `compare` returns 0 only for the same item, and its result for items in the list must not change. */
  constructor(compare: (a: T, b: T) => number) {
    this.#compare = compare;
  }

  get size(): number {
    return this.#items.length - this.#front;
  }

  first(): T | undefined {
    return this.#items[this.#front];
  }

  has(item: T): boolean {
    const at = this.#placeOf(item);
    const there = this.#items[at];
    return there !== undefined && this.#compare(there, item) === 0;
  }

  /** Returns whether the item is new. */
  add(item: T): boolean {
    const last = this.#items[this.#items.length - 1];
    if (last === undefined || this.size === 0 || this.#compare(last, item) < 0) {
      this.#items.push(item);
      return true;
    }
    const at = this.#placeOf(item);
    const there = this.#items[at];
    if (there !== undefined && this.#compare(there, item) === 0) return false;
    this.#items.splice(at, 0, item);
    return true;
  }

  /** Returns whether the item was in the list. */
  delete(item: T): boolean {
    const at = this.#placeOf(item);
    const there = this.#items[at];
    if (there === undefined || this.#compare(there, item) !== 0) return false;
    if (at > this.#front) {
      this.#items.splice(at, 1);
      return true;
    }
    this.#front += 1;
    if (this.#front >= frontMin && this.#front * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#front);
      this.#front = 0;
    }
    return true;
  }

  /** The next item after `item`, which need not be in the list. */
  after(item: T): T | undefined {
    const at = this.#placeOf(item);
    const there = this.#items[at];
    return there !== undefined && this.#compare(there, item) === 0 ? this.#items[at + 1] : there;
  }

  *[Symbol.iterator](): Iterator<T> {
    for (let at = this.#front; at < this.#items.length; at++) {
      const item = this.#items[at];
      if (item !== undefined) yield item;
    }
  }

  /** The first position whose item is not before `item`. */
  #placeOf(item: T): number {
    let low = this.#front;
    let high = this.#items.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const there = this.#items[middle];
      if (there !== undefined && this.#compare(there, item) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
