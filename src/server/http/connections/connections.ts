// The connections that are open, and how many may be. Those without a valid token get at most half of what the process may open, so that they
// can never take the files that agents, operators and the store need. Connections whose answers are not read are closed. It reads no request.

import type { Socket } from 'node:net';
import type { Clock } from '../../../base/clock.ts';
import type { Logger } from '../../../base/log.ts';
import { Pipelines } from './pipelines.ts';
import { RequestTurns } from './request-turns.ts';
import { SlowClients } from './slow-clients.ts';
import { SlowRequests } from './slow-requests.ts';
import { UnreadAnswers } from './unread-answers.ts';

export const dropReasons = ['unauthenticated', 'full', 'unread', 'idle', 'pipelined'] as const;
/** Why a connection was closed. */
export type DropReason = (typeof dropReasons)[number];

const dropMessages: Readonly<Record<DropReason, string>> = {
  unauthenticated: 'too many connections without a token are open; the oldest idle ones are closed',
  full: 'as many connections are open as the process may open files; raise its limit (ulimit -n)',
  unread: 'connections are closed because their clients do not read the answers',
  idle: 'connections to guests are closed because nothing has passed on them for long',
  pipelined: 'connections are closed because too many pipelined requests wait on them',
};

export interface ConnectionLimits {
  /** With and without a token. */
  readonly openMax: number;
  readonly unauthenticatedMax: number;
}

/** What the metrics show. */
export interface ConnectionCounts {
  readonly limits: ConnectionLimits;
  readonly authenticated: number;
  readonly unauthenticated: number;
  /** Of answers that are made and wait for their clients. */
  readonly unreadBytes: number;
  dropped(reason: DropReason): number;
}

/** Some 20 KiB of memory for each: enough for a large fleet that dials all at once, and 320 MiB at most. */
const unauthenticatedMost = 16_384;
/** Where the limit of the system is not known: that of macOS and many Linux services. */
const filesUnknown = 4_096;
const logEveryMs = 10_000;

/** From how many files the process may have open (RLIMIT_NOFILE). An eighth of them is for the store, logs and images. */
export function connectionLimits(filesMax: number | undefined): ConnectionLimits {
  const files = filesMax ?? filesUnknown;
  const others = Math.min(1_024, Math.max(64, Math.ceil(files / 8)));
  const openMax = Math.max(16, files - others);
  return { openMax, unauthenticatedMax: Math.min(unauthenticatedMost, Math.floor(openMax / 2)) };
}

interface Connection {
  readonly socket: Socket;
  readonly peer: string;
}

export class Connections implements ConnectionCounts {
  readonly limits: ConnectionLimits;
  readonly pipelines: Pipelines;
  readonly turns = new RequestTurns();
  readonly unread: UnreadAnswers;
  readonly slow: SlowClients<Socket>;
  readonly slowRequests: SlowRequests<Socket>;
  readonly #clock: Clock;
  readonly #log: Logger;
  /** By the two ends: with TLS, requests come on another socket object than the connection. */
  readonly #byPeer = new Map<string, Connection>();
  /** Without a token and without a request; the one that has been so for longest comes first. */
  readonly #idle = new Set<Connection>();
  /** Without a token, while a request of theirs is answered. */
  readonly #busy = new Set<Connection>();
  /** What requests of those with a token come on: asked for each request. */
  readonly #trusted = new WeakSet<Socket>();
  readonly #dropped = new Map<DropReason, number>();
  readonly #logged = new Map<DropReason, { readonly atMs: number; readonly count: number }>();

  constructor({ limits, clock, log }: { limits: ConnectionLimits; clock: Clock; log: Logger }) {
    this.limits = limits;
    this.#clock = clock;
    this.#log = log;
    this.pipelines = new Pipelines({ overflow: (socket) => this.#close(socket, 'pipelined') });
    this.unread = new UnreadAnswers({ clock, close: (socket) => this.#close(socket, 'unread') });
    this.slowRequests = new SlowRequests({ clock });
    this.slow = new SlowClients({ clock, close: (socket, reason) => this.#close(socket, reason) });
  }

  get unreadBytes(): number {
    return this.unread.bytes;
  }

  get unauthenticated(): number {
    return this.#idle.size + this.#busy.size;
  }

  get authenticated(): number {
    return this.#byPeer.size - this.unauthenticated;
  }

  dropped(reason: DropReason): number {
    return this.#dropped.get(reason) ?? 0;
  }

  /** A new connection; one without a token goes for it when there is no room. */
  opened(socket: Socket): void {
    const connection = { socket, peer: peerOf(socket) };
    this.#byPeer.set(connection.peer, connection);
    this.#idle.add(connection);
    socket.once('close', () => this.#forget(connection));
    if (this.#byPeer.size > this.limits.openMax) this.#drop('full');
    else if (this.unauthenticated > this.limits.unauthenticatedMax) this.#drop('unauthenticated');
  }

  /** Whether a valid token has come on it. */
  isTrusted(socket: Socket): boolean {
    return this.#trusted.has(socket);
  }

  /** It has shown a valid token, and stays open from now on. */
  authenticate(socket: Socket): void {
    if (this.#trusted.has(socket)) return;
    this.#trusted.add(socket);
    const connection = this.#byPeer.get(peerOf(socket));
    if (!connection) return;
    this.#idle.delete(connection);
    this.#busy.delete(connection);
  }

  /** A request without a token has come; `over` calls what it is given once it is answered. */
  busy(socket: Socket, over: (ended: () => void) => void): void {
    const connection = this.#byPeer.get(peerOf(socket));
    if (!connection || !this.#idle.delete(connection)) return;
    this.#busy.add(connection);
    over(() => {
      if (this.#busy.delete(connection)) this.#idle.add(connection);
    });
  }

  #forget(connection: Connection): void {
    if (this.#byPeer.get(connection.peer) === connection) this.#byPeer.delete(connection.peer);
    this.#idle.delete(connection);
    this.#busy.delete(connection);
  }

  /** The timers of this server's connections. */
  stop(): void {
    this.unread.stop();
    this.slow.stop();
  }

  /** The oldest without a token, one without a request first: the new one at the latest, for it has shown none either. */
  #drop(reason: DropReason): void {
    const [oldest] = this.#idle.size > 0 ? this.#idle : this.#busy;
    if (!oldest) return;
    this.#close(oldest.socket, reason);
    this.#forget(oldest);
  }

  #close(socket: Socket, reason: DropReason): void {
    this.#dropped.set(reason, this.dropped(reason) + 1);
    this.#tell(reason, socket);
    socket.destroy();
  }

  /** At most a line every ten seconds for each reason, with how many there were since the last. */
  #tell(reason: DropReason, { remoteAddress }: Socket): void {
    const logged = this.#logged.get(reason);
    const atMs = this.#clock.monotonicMs();
    if (logged && atMs - logged.atMs < logEveryMs) return;
    const count = this.dropped(reason);
    this.#logged.set(reason, { atMs, count });
    this.#log.warn(dropMessages[reason], {
      count: count - (logged?.count ?? 0),
      open: this.#byPeer.size,
      ...this.limits,
      remoteAddress,
    });
  }
}

function peerOf({ remoteAddress, remotePort, localAddress }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress}`;
}
