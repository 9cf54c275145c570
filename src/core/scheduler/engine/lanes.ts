// Lanes: columns of numbers about hosts that lie side by side, eight in a cache line: who looks at one host in all of them finds them
// together.

/** The number of a host is `cells[slot * width + at]`. */
export interface Lane {
  readonly cells: Float64Array;
  readonly width: number;
  readonly at: number;
}

const width = 8;

/** Lanes of one length, given out and taken back. */
export class Lanes {
  readonly #capacity: number;
  readonly #free: Lane[] = [];

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  /** Its numbers are of whoever had it before. */
  take(): Lane {
    const lane = this.#free.pop();
    if (lane) return lane;
    const cells = new Float64Array(width * this.#capacity);
    for (let at = width - 1; at > 0; at--) this.#free.push({ cells, width, at });
    return { cells, width, at: 0 };
  }

  giveBack(lane: Lane): void {
    this.#free.push(lane);
  }
}
