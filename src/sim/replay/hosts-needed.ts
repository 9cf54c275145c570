// How many hosts of one shape are needed at least for what is there: no packing, however clever, does with fewer. The largest of three
// bounds: what is asked for of each class over what a host has; Martello and Toth's L2 for what is too large to share a host (Lower
// bounds and reduction procedures for the bin packing problem, 1990); and groups with a limit for each host.

export class HostsNeeded {
  readonly #capacity: readonly number[];
  readonly #classes: readonly SizeCounts[];
  readonly #groups = new Map<number, { count: number; limit: number }>();
  #there = 0;

  /** `capacity` of a host, by class; 0: the class does not count. `sizes`: all amounts that will ever be asked for, by class. */
  constructor(capacity: readonly number[], sizes: readonly Iterable<number>[]) {
    this.#capacity = capacity;
    this.#classes = capacity.map((each, i) => new SizeCounts(each, sizes[i] ?? []));
  }

  /** `times`: 1 for one that comes, -1 for one that goes. */
  add(amounts: readonly number[], times: 1 | -1): void {
    this.#there += times;
    for (let i = 0; i < this.#capacity.length; i++) this.#classes[i]?.add(amounts[i] ?? 0, times);
  }

  addToGroup(group: number, limit: number, times: 1 | -1): void {
    let known = this.#groups.get(group);
    if (!known) this.#groups.set(group, (known = { count: 0, limit }));
    known.limit = Math.min(known.limit, limit);
    known.count += times;
  }

  count(): number {
    if (this.#there === 0) return 0;
    let most = 1;
    for (const each of this.#classes) most = Math.max(most, each.hostsNeeded());
    for (const { count, limit } of this.#groups.values()) most = Math.max(most, Math.ceil(count / limit));
    return most;
  }
}

/** How many there are of each size of one class. */
class SizeCounts {
  readonly #capacity: number;
  readonly #sizes: Float64Array;
  readonly #counts: Float64Array;
  readonly #placeOf: ReadonlyMap<number, number>;
  #sum = 0;

  constructor(capacity: number, sizes: Iterable<number>) {
    this.#capacity = capacity;
    this.#sizes = Float64Array.from(new Set(sizes)).sort();
    this.#counts = new Float64Array(this.#sizes.length);
    this.#placeOf = new Map([...this.#sizes].map((size, i) => [size, i]));
  }

  add(size: number, times: number): void {
    const place = this.#placeOf.get(size);
    if (place === undefined) return;
    this.#counts[place] = (this.#counts[place] ?? 0) + times;
    this.#sum += times * size;
  }

  hostsNeeded(): number {
    const capacity = this.#capacity;
    if (capacity === 0) return 0;
    return Math.max(Math.ceil(this.#sum / capacity), this.#largeOnes());
  }

  /**
   * L2: for each size K up to half a host. Those over C - K share a host with none from K on; of the others over half a host each needs
   * one of its own, and what is left there is all that those from K to half a host can use besides.
   */
  #largeOnes(): number {
    const sizes = this.#sizes;
    const counts = this.#counts;
    const capacity = this.#capacity;
    let middle = 0; // the first over half a host
    while (middle < sizes.length && (sizes[middle] ?? 0) <= capacity / 2) middle += 1;
    let large = 0;
    let largeSum = 0;
    for (let i = middle; i < sizes.length; i++) {
      large += counts[i] ?? 0;
      largeSum += (counts[i] ?? 0) * (sizes[i] ?? 0);
    }
    if (large === 0) return 0;
    let small = 0; // what those from K to half a host ask for
    for (let i = 0; i < middle; i++) small += (counts[i] ?? 0) * (sizes[i] ?? 0);
    let alone = 0;
    let top = sizes.length; // from here on they are alone
    let most = large;
    for (let k = 0; k < middle; k++) {
      const size = sizes[k] ?? 0;
      while (top > middle && (sizes[top - 1] ?? 0) > capacity - size) {
        top -= 1;
        alone += counts[top] ?? 0;
        large -= counts[top] ?? 0;
        largeSum -= (counts[top] ?? 0) * (sizes[top] ?? 0);
      }
      most = Math.max(most, alone + large + Math.max(0, Math.ceil((small - (large * capacity - largeSum)) / capacity)));
      small -= (counts[k] ?? 0) * size;
    }
    return most;
  }
}
