// Desks: what many lists of leaders keep of every host, host by host: a host's bytes lie side by side, so that telling all lists of a
// changed host touches a cache line or two and not one in each list.

/** Of one list: the state of a host is `states[slot * width + at]`, and no listed host scores less than `cuts[at]`. */
export interface Desk {
  readonly states: Uint8Array;
  readonly cuts: Float64Array;
  readonly width: number;
  readonly at: number;
}

const width = 64;

/** Desks given out and taken back. */
export class Desks {
  readonly #capacity: number;
  readonly #free: Desk[] = [];

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  /** What lies on it is of whoever had it before. */
  take(): Desk {
    const desk = this.#free.pop();
    if (desk) return desk;
    const states = new Uint8Array(width * this.#capacity);
    const cuts = new Float64Array(width);
    for (let at = width - 1; at > 0; at--) this.#free.push({ states, cuts, width, at });
    return { states, cuts, width, at: 0 };
  }

  giveBack(desk: Desk): void {
    this.#free.push(desk);
  }
}

/** A desk that stands alone. */
export function loneDesk(capacity: number): Desk {
  return { states: new Uint8Array(capacity), cuts: new Float64Array(1), width: 1, at: 0 };
}
