// Who begins next, when more requests arrive at once than one turn of the event loop should begin. Connections take turns, so that a
// burst on some never delays a single request on another for long. It reads no request.

import { system } from '../../../base/system.ts';

/** Some 3 ms of work: about as long as the commit that the requests of a turn share. */
const perTurnDefault = 16;
/** From here on nothing more is read from the connection. */
const waitingBeforePause = 128;

/** A socket. */
interface Connection {
  pause(): void;
  resume(): void;
}

export class RequestTurns {
  readonly #afterTurn: (call: () => void) => void;
  readonly #perTurn: number;
  /** The one whose turn it is comes first. */
  readonly #lines = new Map<Connection, (() => void)[]>();
  #begun = 0;
  #turnIsPlanned = false;

  /** `afterTurn` calls in the next turn of the event loop. */
  constructor({ afterTurn = system.afterTurn, perTurn = perTurnDefault }: TurnOptions = {}) {
    this.#afterTurn = afterTurn;
    this.#perTurn = perTurn;
  }

  /** Calls `begin` at once, or in a later turn. Requests of one connection begin in their order. */
  enter(connection: Connection, begin: () => void): void {
    if (this.#begun < this.#perTurn && this.#lines.size === 0) return this.#begin(begin);
    const line = this.#lines.get(connection);
    if (!line) return void this.#lines.set(connection, [begin]);
    line.push(begin);
    if (line.length > waitingBeforePause) connection.pause();
  }

  #begin(begin: () => void): void {
    this.#begun += 1;
    if (!this.#turnIsPlanned) {
      this.#turnIsPlanned = true;
      this.#afterTurn(() => this.#nextTurn());
    }
    begin();
  }

  #nextTurn(): void {
    this.#turnIsPlanned = false;
    this.#begun = 0;
    for (const [connection, line] of this.#lines) {
      if (this.#begun >= this.#perTurn) return;
      const begin = line.shift();
      this.#lines.delete(connection);
      if (line.length > 0) this.#lines.set(connection, line);
      if (line.length === waitingBeforePause) connection.resume();
      if (begin) this.#begin(begin);
    }
  }
}

interface TurnOptions {
  readonly afterTurn?: (call: () => void) => void;
  readonly perTurn?: number;
}
