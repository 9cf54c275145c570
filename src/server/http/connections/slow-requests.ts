// Requests that have not arrived whole in the time that Node gives them. Node counts the time in which this server does not read: while the disk
// takes no more of an upload, or while a connection with many pipelined requests waits its turn. So its verdict is looked at again here,
// and only a client that sends too little while it is read is refused.

import type { Clock } from '../../../base/clock.ts';

/** At least this much must come within `stallMsMax`, as for answers (slow-clients.ts). */
const progressBytesMin = 64 * 1024;

/** The part of a socket that is looked at. */
interface Read {
  readonly destroyed: boolean;
  readonly bytesRead: number;
  isPaused(): boolean;
}

/** The part of a request. */
interface Arriving {
  readonly complete: boolean;
}

interface Late {
  /** A whole request that came before the one that is late; another whole one means that this one has come. */
  readonly before: Arriving | undefined;
  readonly stallMsMax: number;
  readonly refuse: () => void;
  since: { readonly atMs: number; readonly bytesRead: number };
}

export class SlowRequests<S extends Read> {
  readonly #clock: Clock;
  readonly #newest = new WeakMap<S, Arriving>();

  constructor({ clock }: { clock: Clock }) {
    this.#clock = clock;
  }

  /** The headers of a request have come on the socket. */
  begun(socket: S, request: Arriving): void {
    this.#newest.set(socket, request);
  }

  /** Node's time for a request, `slowMsMax`, is over. Calls `refuse` once it is clear that the client is slow, not this server. */
  expired(socket: S, { slowMsMax, refuse }: { readonly slowMsMax: number; readonly refuse: () => void }): void {
    const newest = this.#newest.get(socket);
    const inHeaders = newest === undefined || newest.complete;
    const lookEveryMs = slowMsMax / 6;
    const late = {
      before: inHeaders ? newest : undefined,
      // Of headers what has come is read by the next look, even if this process was busy for long.
      stallMsMax: inHeaders ? lookEveryMs : slowMsMax / 2,
      refuse,
      since: { atMs: this.#clock.monotonicMs(), bytesRead: socket.bytesRead },
    };
    this.#lookLater(socket, late, lookEveryMs);
  }

  #lookLater(socket: S, late: Late, delayMs: number): void {
    this.#clock.setTimer(delayMs, () => this.#look(socket, late, delayMs), { background: true });
  }

  #look(socket: S, late: Late, delayMs: number): void {
    const newest = this.#newest.get(socket);
    if (socket.destroyed || (newest !== late.before && newest?.complete)) return;
    const atMs = this.#clock.monotonicMs();
    const { bytesRead } = socket;
    if (socket.isPaused() || bytesRead - late.since.bytesRead >= progressBytesMin) late.since = { atMs, bytesRead };
    else if (atMs - late.since.atMs >= late.stallMsMax) return late.refuse();
    this.#lookLater(socket, late, delayMs);
  }
}
