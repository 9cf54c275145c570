// Requests that a client sends before it has read the answers to those before them (RFC 9112, 9.3.2). Each begins when its answer can be
// sent, so that one connection holds one answer in memory; writes with small answers may begin earlier, for they share a commit. It
// knows no routes.
//
//   arrives ──▶ the connection is free ──────────────▶ begins
//      └──────▶ waits ──▶ first in line, or a write ─▶ begins
//                         among the first 64

import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Writes of one connection at a time: sixteen such clients fill a commit. */
const aheadMax = 64;
/** From here on nothing more is read from the connection. One read brings 64 KiB, so that some thousands can wait all the same. */
const waitingBeforePause = 128;
/** On all connections; some 5 KiB for each. */
const waitingMostDefault = 16_384;

interface Entry {
  readonly small: boolean;
  begin: (() => void) | undefined;
}

export class Pipelines {
  readonly #lines = new WeakMap<Socket, Entry[]>();
  readonly #overflow: (socket: Socket) => void;
  readonly #waitingMost: number;
  #waiting = 0;

  /** `overflow` closes a connection because too many requests wait. */
  constructor({ overflow, waitingMost = waitingMostDefault }: PipelineOptions) {
    this.#overflow = overflow;
    this.#waitingMost = waitingMost;
  }

  /** Calls `begin` once the request may begin; never, when its connection is closed before. */
  enter(socket: Socket, response: ServerResponse, isSmall: () => boolean, begin: () => void): void {
    if (response.socket !== null) return begin();
    if (socket.destroyed) return;
    const line = this.#lineOf(socket);
    line.push({ small: isSmall(), begin });
    this.#waiting += 1;
    response.once('socket', () => this.#isNext(socket, line));
    beginAhead(line);
    if (line.length > waitingBeforePause) socket.pause();
    if (this.#waiting > this.#waitingMost && line.length > aheadMax) this.#overflow(socket);
  }

  #lineOf(socket: Socket): Entry[] {
    const known = this.#lines.get(socket);
    if (known) return known;
    const line: Entry[] = [];
    this.#lines.set(socket, line);
    socket.once('close', () => {
      this.#waiting -= line.length;
      line.length = 0;
    });
    return line;
  }

  /** The answer before its own has gone out. */
  #isNext(socket: Socket, line: Entry[]): void {
    // Not at once: Node is about to send what the answer may have already.
    queueMicrotask(() => {
      const first = line.shift();
      if (!first) return;
      this.#waiting -= 1;
      if (line.length === waitingBeforePause) socket.resume();
      first.begin?.();
      beginAhead(line);
    });
  }
}

interface PipelineOptions {
  readonly overflow: (socket: Socket) => void;
  readonly waitingMost?: number;
}

/** In their order: none begins before one that came earlier. */
function beginAhead(line: readonly Entry[]): void {
  for (const entry of line.slice(0, aheadMax)) {
    const { begin, small } = entry;
    if (!begin) continue;
    if (!small) return;
    entry.begin = undefined;
    begin();
  }
}
