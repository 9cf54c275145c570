// Connections that go on after their request: ways into guests, watches, downloads. Closes those whose clients take too little of what is
// sent, and, of ways into guests, those on which nothing passes either way. Whole answers are watched by unread-answers.ts.

import type { Clock, Timer } from '../../../base/clock.ts';

/** More than this must not stand unread for `unreadMsMax`; at least as much must be taken in that time. */
const unreadBytesMax = 64 * 1024;
const unreadMsMax = 30_000;
const lookEveryMs = 10_000;

/** The part of a socket that is looked at. */
export interface Watched {
  readonly bytesRead: number;
  /** With what still waits to be sent. */
  readonly bytesWritten: number;
  readonly writableLength: number;
  once(event: 'close', listener: () => void): unknown;
  off(event: 'close', listener: () => void): unknown;
}

interface State {
  readonly idleMsMax: number;
  /** How much had been taken when too much began to wait, or when enough of it was taken last. */
  slowSince: { readonly atMs: number; readonly taken: number } | undefined;
  passed: number;
  passedAtMs: number;
}

export class SlowClients<S extends Watched> {
  readonly #clock: Clock;
  readonly #close: (socket: S, reason: 'unread' | 'idle') => void;
  readonly #watched = new Map<S, State>();
  #timer: Timer | undefined;

  constructor({ clock, close }: { clock: Clock; close: (socket: S, reason: 'unread' | 'idle') => void }) {
    this.#clock = clock;
    this.#close = close;
  }

  /** Until the socket is closed, or the returned function is called. */
  watch(socket: S, { idleMsMax = Number.POSITIVE_INFINITY }: { readonly idleMsMax?: number } = {}): () => void {
    const passed = socket.bytesRead + takenOf(socket);
    this.#watched.set(socket, { idleMsMax, slowSince: undefined, passed, passedAtMs: this.#clock.monotonicMs() });
    const forget = (): void => {
      socket.off('close', forget);
      this.#watched.delete(socket);
    };
    socket.once('close', forget);
    this.#lookLater();
    return forget;
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#watched.clear();
  }

  #lookLater(): void {
    this.#timer ??= this.#clock.setTimer(lookEveryMs, () => this.#look(), { background: true });
  }

  #look(): void {
    this.#timer = undefined;
    const nowMs = this.#clock.monotonicMs();
    for (const [socket, state] of this.#watched) {
      const reason = isSlow(socket, state, nowMs) ? 'unread' : isIdle(socket, state, nowMs) ? 'idle' : undefined;
      if (reason === undefined) continue;
      this.#watched.delete(socket);
      this.#close(socket, reason);
    }
    if (this.#watched.size > 0) this.#lookLater();
  }
}

function takenOf({ bytesWritten, writableLength }: Watched): number {
  return bytesWritten - writableLength;
}

function isSlow(socket: Watched, state: State, nowMs: number): boolean {
  if (socket.writableLength <= unreadBytesMax) {
    state.slowSince = undefined;
    return false;
  }
  const taken = takenOf(socket);
  const { slowSince } = state;
  if (slowSince && taken - slowSince.taken < unreadBytesMax) return nowMs - slowSince.atMs >= unreadMsMax;
  state.slowSince = { atMs: nowMs, taken };
  return false;
}

function isIdle(socket: Watched, state: State, nowMs: number): boolean {
  const passed = socket.bytesRead + takenOf(socket);
  if (passed === state.passed) return nowMs - state.passedAtMs >= state.idleMsMax;
  state.passed = passed;
  state.passedAtMs = nowMs;
  return false;
}
