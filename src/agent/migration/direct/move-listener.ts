// The listener of one move on its target: accepts the source, and reads the files of the guest over this connection. Other clients get no answer.

import { once } from 'node:events';
import { type ClientHttp2Session, connect } from 'node:http2';
import type { Duplex } from 'node:stream';
import { createServer, type Server, type TLSSocket } from 'node:tls';
import { ApiError } from '../../../api/errors.ts';
import { LiveMachine, MoveManifest } from '../../../api/agent-protocol.ts';
import { parse } from '../../../api/parse.ts';
import type { MoveAddress } from '../../../api/resources/migration.ts';
import { type Clock, sleep } from '../../../base/clock.ts';
import { isRecord } from '../../../base/is-record.ts';
import { describeError, type Logger } from '../../../base/log.ts';
import type { LiveSource, Move } from '../move.ts';
import type { Piece } from '../transfer.ts';
import type { DirectOptions } from './contract.ts';
import { askToSend, refusalIn } from './ask-to-send.ts';
import { readHello } from './hello.ts';
import { joinStreams } from './join-streams.ts';
import { isPeer, windowBytes } from './peer.ts';

/** The source learns the address from the control plane, at about the time when the target may begin to copy. */
const patienceMs = 5_000;
/** Detects a source that disappears without closing the connection. Reading and hashing a piece takes much less. */
const answerMsMax = 60_000;

interface Awaited {
  readonly id: string;
  readonly peer: string;
}

export class MoveListener {
  readonly at: MoveAddress;
  readonly #server: Server;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #awaited: Awaited;
  readonly #sockets = new Set<TLSSocket>();
  #session: ClientHttp2Session | undefined;
  #connect: ((name: string) => Promise<Duplex>) | undefined;
  #waited = false;
  #arrived = Promise.withResolvers<void>();

  static async open(options: DirectOptions, awaited: Awaited): Promise<MoveListener> {
    const { identity, address, ports } = options;
    if (address === undefined) throw new Error('this host has no address for moves');
    for (let port = ports.first; ; port++) {
      const server = createServer({
        ...{ key: identity.key, cert: identity.certificate, minVersion: 'TLSv1.3' },
        // Both certificates are self-signed; the fingerprints are compared.
        ...{ requestCert: true, rejectUnauthorized: false },
      });
      try {
        server.listen({ host: address, port });
        await once(server, 'listening');
        return new MoveListener(server, { address, port }, options, awaited);
      } catch (error) {
        if (port >= ports.last || !isTaken(error)) throw error;
      }
    }
  }

  private constructor(server: Server, at: MoveAddress, { clock, log }: DirectOptions, awaited: Awaited) {
    this.#server = server;
    const bound = server.address();
    this.at = { ...at, ...(isRecord(bound) && typeof bound['port'] === 'number' ? { port: bound['port'] } : {}) };
    this.#clock = clock;
    this.#log = log;
    this.#awaited = awaited;
    server.on('secureConnection', (socket) => void this.#accept(socket));
    server.on('tlsClientError', (error) => log.debug('a connection for a move failed', { error: error.message }));
    server.on('error', (error) => log.warn('cannot listen for a move', { error: error.message }));
  }

  async #accept(socket: TLSSocket): Promise<void> {
    this.#sockets.add(socket);
    socket.on('close', () => this.#sockets.delete(socket));
    socket.on('error', (error) => this.#log.debug('a connection for a move broke', { error: error.message }));
    const { id, peer } = this.#awaited;
    const hello = isPeer(socket, peer) ? await readHello(socket, this.#clock) : undefined;
    if (hello?.id !== id || socket.destroyed) {
      this.#log.warn('refused a connection for a move: it is not from the host that the guest leaves', { move: id });
      return void socket.destroy();
    }
    if (hello.name !== undefined) return this.#join(socket, hello.name);
    const session = connect('http://source', {
      createConnection: () => socket,
      settings: { enablePush: false, initialWindowSize: windowBytes },
    });
    session.on('error', (error) => this.#log.debug('a connection for a move broke', { error: describeError(error) }));
    session.on('close', () => {
      socket.destroy();
      if (this.#session === session) this.#session = undefined;
    });
    this.#session?.destroy(); // the source has dialled again
    this.#session = session;
    this.#arrived.resolve();
    this.#arrived = Promise.withResolvers();
  }

  /** Handles connections for a disk or the memory. */
  accept(connect: ((name: string) => Promise<Duplex>) | undefined): void {
    this.#connect = connect;
  }

  async #join(socket: TLSSocket, name: string): Promise<void> {
    try {
      if (this.#connect === undefined) throw new Error('no machine waits for it');
      joinStreams(socket, await this.#connect(name));
    } catch (error) {
      this.#log.warn('cannot connect a machine that waits for a guest', { name, error: describeError(error) });
      socket.destroy();
    }
  }

  async source(signal: AbortSignal): Promise<LiveSource | undefined> {
    if (this.#session === undefined && !this.#waited) {
      this.#waited = true; // once: a host that cannot connect would cost this time for each piece
      const limit = new AbortController();
      await Promise.race([
        this.#arrived.promise,
        sleep(this.#clock, patienceMs, AbortSignal.any([signal, limit.signal])),
      ]);
      limit.abort();
    }
    const session = this.#session;
    if (session === undefined || session.destroyed) return undefined;
    return {
      manifest: async (move, cut) =>
        parse(MoveManifest, JSON.parse((await this.#get(session, pathOf(move), cut)).toString())),
      read: (move, piece, cut) => this.#get(session, pathOf(move, piece), cut),
      machine: async (move, cut) =>
        parse(LiveMachine, JSON.parse((await this.#get(session, `${pathOf(move)}/live`, cut)).toString())),
      sent: async (move, cut) => {
        const said: unknown = JSON.parse((await this.#get(session, `${pathOf(move)}/sent`, cut)).toString());
        return isRecord(said) && said['sent'] === true;
      },
      send: (move, onProgress, cut) => askToSend(session, `${pathOf(move)}/live`, onProgress, cut),
    };
  }

  async #get(session: ClientHttp2Session, path: string, signal: AbortSignal): Promise<Buffer> {
    const late = new AbortController();
    const timer = this.#clock.setTimer(answerMsMax, () => late.abort());
    try {
      const stream = session.request({ ':path': path }, { signal: AbortSignal.any([signal, late.signal]) });
      const pieces: Buffer[] = [];
      let status = 0;
      stream.on('response', (headers) => {
        status = headers[':status'] ?? 0;
      });
      for await (const piece of stream) pieces.push(piece);
      const body = Buffer.concat(pieces);
      if (status !== 200) throw refusalIn(body, status);
      return body;
    } catch (error) {
      if (error instanceof ApiError || signal.aborted) throw error;
      session.destroy(); // from now on through the control plane, or over another connection
      throw new ApiError(
        'HostUnreachable',
        `the connection to the host that the guest leaves broke: ${describeError(error)}`,
      );
    } finally {
      timer.cancel();
    }
  }

  async close(): Promise<void> {
    this.#session?.destroy();
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }
}

function pathOf({ instanceId, id }: Move, piece?: Piece): string {
  const path = `/guests/${instanceId}/moves/${id}`;
  return piece === undefined ? path : `${path}/${piece.name}?offset=${piece.offset}&length=${piece.length}`;
}

function isTaken(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EADDRINUSE';
}
