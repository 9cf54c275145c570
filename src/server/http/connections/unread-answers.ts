// Answers that are made but not read by their clients: how many bytes of memory they hold, on each connection and in all. Connections
// that hold them for too long, or the longest while all hold too much, are closed. Streams are not counted: they wait for their readers.

import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock, Timer } from '../../../base/clock.ts';

/** Some 50 of the largest pages. */
const bytesMaxDefault = 256 * 1024 * 1024;
/** For the next answer to be read whole: a page of 5 MiB at 44 KiB a second. */
const unreadMsMax = 120_000;

interface Held {
  bytes: number;
  /** Since when its oldest unread answer is waited for. */
  sinceMs: number;
  readonly closed: () => void;
}

export class UnreadAnswers {
  readonly #clock: Clock;
  readonly #close: (socket: Socket) => void;
  readonly #bytesMax: number;
  /** The one that has waited for longest comes first. */
  readonly #held = new Map<Socket, Held>();
  #bytes = 0;
  #timer: Timer | undefined;

  /** `close` closes a connection because its answers are not read. */
  constructor({ clock, close, bytesMax = bytesMaxDefault }: UnreadOptions) {
    this.#clock = clock;
    this.#close = close;
    this.#bytesMax = bytesMax;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** A complete answer of this many bytes was passed to Node. */
  sent(socket: Socket, response: ServerResponse, bytes: number): void {
    const isOut = response.socket !== null && socket.writableLength === 0;
    if (isOut || socket.destroyed) return;
    this.#add(socket, bytes);
    response.once('finish', () => this.#wasRead(socket, bytes));
    if (this.#bytes > this.#bytesMax) this.#closeOldest();
    this.#timer ??= this.#clock.setTimer(unreadMsMax, () => this.#closeOverdue(), { background: true });
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #add(socket: Socket, bytes: number): void {
    let held = this.#held.get(socket);
    if (!held) {
      held = { bytes: 0, sinceMs: this.#clock.monotonicMs(), closed: () => this.#forget(socket) };
      this.#held.set(socket, held);
      socket.once('close', held.closed);
    }
    held.bytes += bytes;
    this.#bytes += bytes;
  }

  #wasRead(socket: Socket, bytes: number): void {
    const held = this.#held.get(socket);
    if (!held) return;
    held.bytes -= bytes;
    this.#bytes -= bytes;
    this.#held.delete(socket);
    if (held.bytes === 0) socket.off('close', held.closed);
    else {
      held.sinceMs = this.#clock.monotonicMs();
      this.#held.set(socket, held); // as the youngest
    }
  }

  #forget(socket: Socket): void {
    this.#bytes -= this.#held.get(socket)?.bytes ?? 0;
    this.#held.delete(socket);
  }

  #closeOldest(): void {
    for (const socket of this.#held.keys()) {
      if (this.#bytes <= this.#bytesMax) return;
      this.#forget(socket);
      this.#close(socket);
    }
  }

  #closeOverdue(): void {
    this.#timer = undefined;
    const nowMs = this.#clock.monotonicMs();
    for (const [socket, { sinceMs }] of this.#held) {
      const leftMs = sinceMs + unreadMsMax - nowMs;
      if (leftMs > 0) {
        this.#timer = this.#clock.setTimer(leftMs, () => this.#closeOverdue(), { background: true });
        return;
      }
      this.#forget(socket);
      this.#close(socket);
    }
  }
}

interface UnreadOptions {
  readonly clock: Clock;
  readonly close: (socket: Socket) => void;
  readonly bytesMax?: number;
}
