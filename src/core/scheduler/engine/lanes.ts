// Lanes: columns of numbers about hosts that lie side by side, eight in a cache line, so that reading all of them for
// one host touches few lines.

/** The number of a host is `cells[slot * width + at]`. */
export interface Lane {
  readonly cells: Float64Array;
  readonly width: number;
  readonly at: number;
}

const width = 8;

/** Allocates and frees lanes of one length. */
export class Lanes {
  readonly #capacity: number;
  readonly #free: Lane[] = [];

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  /** The lane still holds the numbers of its previous user. */
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
