// Desks: the state that many candidate lists keep for every host, stored host by host. The bytes of one host lie side
// by side, so updating all lists for a changed host touches one or two cache lines instead of one for each list.

/**
 * One list's part: the state of a host is `states[slot * width + at]`, and no listed host scores less than `cuts[at]`.
 */
export interface Desk {
  readonly states: Uint8Array;
  readonly cuts: Float64Array;
  readonly width: number;
  readonly at: number;
}

const width = 64;

/** Allocates and frees desks. */
export class Desks {
  readonly #capacity: number;
  readonly #free: Desk[] = [];

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  /** The desk still holds the data of its previous user. */
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

/** A desk that shares memory with no other. */
export function loneDesk(capacity: number): Desk {
  return { states: new Uint8Array(capacity), cuts: new Float64Array(1), width: 1, at: 0 };
}
