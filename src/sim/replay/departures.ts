// Who leaves when: a binary heap, the earliest first and of one second the lower row.

export class Departures {
  readonly #times: number[] = [];
  readonly #rows: number[] = [];

  get size(): number {
    return this.#rows.length;
  }

  /** Infinity when none ends. */
  get nextS(): number {
    return this.#times[0] ?? Number.POSITIVE_INFINITY;
  }

  push(atS: number, row: number): void {
    let at = this.#rows.length;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!this.#isBefore(atS, row, parent)) break;
      this.#set(at, this.#times[parent] ?? 0, this.#rows[parent] ?? 0);
      at = parent;
    }
    this.#set(at, atS, row);
  }

  /** The row that leaves next; only while there are some. */
  pop(): number {
    const first = this.#rows[0] ?? -1;
    const atS = this.#times.pop() ?? 0;
    const row = this.#rows.pop() ?? -1;
    const { length } = this.#rows;
    if (length === 0) return first;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= length) break;
      const right = child + 1;
      if (right < length && this.#isBefore(this.#times[right] ?? 0, this.#rows[right] ?? 0, child)) child = right;
      if (this.#isBefore(atS, row, child)) break;
      this.#set(at, this.#times[child] ?? 0, this.#rows[child] ?? 0);
      at = child;
    }
    this.#set(at, atS, row);
    return first;
  }

  #isBefore(atS: number, row: number, other: number): boolean {
    const otherS = this.#times[other] ?? 0;
    return atS < otherS || (atS === otherS && row < (this.#rows[other] ?? 0));
  }

  #set(at: number, atS: number, row: number): void {
    this.#times[at] = atS;
    this.#rows[at] = row;
  }
}
