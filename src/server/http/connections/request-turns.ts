// Who begins next, when more requests arrive at once than one turn of the event loop should begin. Senders take turns, and the connections of
// each among themselves: neither a burst on some connections nor one over many delays a single request of another sender for long. It reads no
// request.

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
  /** By sender, then by connection; whose turn it is comes first. */
  readonly #lines = new Map<unknown, Map<Connection, (() => void)[]>>();
  /** The sender of each connection with requests that wait: it stays the same until all have begun, so that they keep their order. */
  readonly #waitingAs = new Map<Connection, unknown>();
  #begun = 0;
  #turnIsPlanned = false;

  /** `afterTurn` calls in the next turn of the event loop. */
  constructor({ afterTurn = system.afterTurn, perTurn = perTurnDefault }: TurnOptions = {}) {
    this.#afterTurn = afterTurn;
    this.#perTurn = perTurn;
  }

  /** Calls `begin` at once, or in a later turn. Requests of one connection begin in their order. `senderOf` is asked only when one must wait. */
  enter(connection: Connection, senderOf: () => unknown, begin: () => void): void {
    if (this.#begun < this.#perTurn && this.#lines.size === 0) return this.#begin(begin);
    const sender = this.#waitingAs.get(connection) ?? senderOf();
    const lines = this.#lines.get(sender) ?? new Map<Connection, (() => void)[]>();
    this.#lines.set(sender, lines);
    const line = lines.get(connection);
    if (!line) {
      this.#waitingAs.set(connection, sender);
      return void lines.set(connection, [begin]);
    }
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
    for (const [sender, lines] of this.#lines) {
      if (this.#begun >= this.#perTurn) return;
      this.#lines.delete(sender);
      const begin = this.#firstOf(lines);
      if (lines.size > 0) this.#lines.set(sender, lines);
      if (begin) this.#begin(begin);
    }
  }

  /** The first of the connection whose turn it is, which then has the last turn. */
  #firstOf(lines: Map<Connection, (() => void)[]>): (() => void) | undefined {
    for (const [connection, line] of lines) {
      const begin = line.shift();
      lines.delete(connection);
      if (line.length > 0) lines.set(connection, line);
      else this.#waitingAs.delete(connection);
      if (line.length === waitingBeforePause) connection.resume();
      return begin;
    }
    return undefined;
  }
}

interface TurnOptions {
  readonly afterTurn?: (call: () => void) => void;
  readonly perTurn?: number;
}
