// The lines that agents dial: each is an upgraded connection on which the agent serves HTTP/2 and this side asks.

import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
} from 'node:http2';
import type { Duplex } from 'node:stream';
import { type Clock, sleep } from '../../../base/clock.ts';
import { describeError, type Logger } from '../../../base/log.ts';
import { ApiError, isErrorCode } from '../../../api/errors.ts';
import { keepAlive, UnlikeAnAgent } from './agent-link-guard.ts';
import type { HostAnswer, HostLinks } from './host-links.ts';

/** An agent dials again within a second; who asks in between need not know. */
const patienceMs = 2000;
/** Clients in guests of one host at a time: half of what an agent answers at once. */
const openMax = 512;
/** For an answer to begin: an agent may copy a disk before it. */
const answerMsMax = 600_000;
/** Far more than the addresses that a server has. A line that is gone without a word is found out by its agent only. */
const linesMax = 8;
/** On their way on one line, for all its streams together: HTTP/2's own 64 KiB would wait for an answer after each few frames. */
const lineWindowBytes = 8 * 1024 * 1024;

/** What an agent may make this side keep. It sends few headers, never pushes, and lets this side open the streams. */
const sessionLimits = {
  settings: {
    enablePush: false,
    initialWindowSize: 1 << 20,
    maxConcurrentStreams: 1024,
    maxHeaderListSize: 16 * 1024,
  },
  maxReservedRemoteStreams: 0,
  maxHeaderListPairs: 64,
  maxSettings: 16,
  maxSessionInvalidFrames: 100,
  maxSessionRejectedStreams: 100,
};

interface Line {
  readonly session: ClientHttp2Session;
  /** Of the agent's session that dialled it. */
  readonly epoch: number;
}

export class AgentLinks implements HostLinks {
  /** By host, the newest last. An agent may know this server by several addresses, and holds a line to each. */
  readonly #lines = new Map<string, readonly Line[]>();
  /** By host: how many clients are in its guests. */
  readonly #opened = new Map<string, number>();
  /** Those that wait for the line of a host. */
  readonly #waiting = new Set<{ readonly host: string; readonly over: AbortController }>();
  readonly #clock: Clock;
  readonly #log: Logger;

  constructor({ clock, log }: { readonly clock: Clock; readonly log: Logger }) {
    this.#clock = clock;
    this.#log = log;
  }

  /** Takes over an upgraded connection; it ends those of earlier sessions of the host, and the oldest of very many. */
  accept(host: string, socket: Duplex, epoch: number): void {
    const session = connect('http://agent', { createConnection: () => socket, ...sessionLimits });
    session.once('connect', () => {
      if (!session.destroyed) session.setLocalWindowSize(lineWindowBytes); // a newer one may have come meanwhile
    });
    const formers = this.#lines.get(host) ?? [];
    const kept = formers.filter((line) => line.epoch >= epoch).slice(1 - linesMax);
    this.#lines.set(host, [...kept, { session, epoch }]);
    for (const former of formers) if (!kept.includes(former)) former.session.destroy();
    for (const waiting of this.#waiting) if (waiting.host === host) waiting.over.abort();
    session.on('error', (error) => this.#log.debug('agent link failed', { host, error: describeError(error) }));
    socket.on('error', () => session.destroy()); // HTTP/2 takes the listeners that were there before
    const unlike = new UnlikeAnAgent(this.#clock, (what) => {
      this.#log.warn('an agent link is closed, because no agent behaves so', { host, what });
      session.destroy();
    });
    unlike.watch(session);
    const stop = keepAlive(session, this.#clock);
    session.on('close', () => {
      stop();
      socket.destroy();
      const left = (this.#lines.get(host) ?? []).filter((line) => line.session !== session);
      if (left.length > 0) this.#lines.set(host, left);
      else this.#lines.delete(host);
    });
  }

  async get(host: string, path: string, signal: AbortSignal): Promise<HostAnswer> {
    const { stream, headers } = await this.#ask(host, { [constants.HTTP2_HEADER_PATH]: path }, signal);
    return { headers: plain(headers), body: stream };
  }

  async open(
    host: string,
    path: string,
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<Duplex> {
    const open = this.#opened.get(host) ?? 0;
    if (open >= openMax)
      throw new ApiError('TooManyRequests', `${open} clients are in guests of host "${host}" already; try again later`);
    this.#opened.set(host, open + 1);
    const closed = (): void => {
      const left = (this.#opened.get(host) ?? 1) - 1;
      if (left > 0) this.#opened.set(host, left);
      else this.#opened.delete(host);
    };
    try {
      const asked = { ...headers, [constants.HTTP2_HEADER_PATH]: path, [constants.HTTP2_HEADER_METHOD]: 'POST' };
      const { stream } = await this.#ask(host, asked, signal);
      stream.once('close', closed);
      return stream;
    } catch (error) {
      closed();
      throw error;
    }
  }

  /** Asked, and answered with 200. */
  async #ask(host: string, asked: OutgoingHttpHeaders, signal: AbortSignal) {
    const session = this.#open(host) ?? (await this.#awaited(host, signal));
    if (!session) {
      throw new ApiError(
        'HostUnreachable',
        `host "${host}" is not connected to this control plane now; of several, ask the one that its agent is connected to, or wait until it comes back: "berth host show ${host}"`,
      );
    }
    if (signal.aborted)
      throw new ApiError('HostUnreachable', `the request to host "${host}" was cancelled: its client is gone`);
    const stream = session.request(asked, { endStream: asked[constants.HTTP2_HEADER_METHOD] === undefined });
    signal.addEventListener('abort', () => stream.close(constants.NGHTTP2_CANCEL), { once: true });
    stream.on('error', () => {}); // who reads it is told as well
    stream.on('headers', () => stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM)); // agents send no interim answers
    const overdue = this.#clock.setTimer(answerMsMax, () => stream.close(constants.NGHTTP2_CANCEL));
    try {
      const headers = await responseOf(stream, host);
      if (headers[':status'] === 200) return { headers, stream };
      stream.end(); // nobody will say more
      throw refusalOf(await textOf(stream), host);
    } finally {
      overdue.cancel();
    }
  }

  #open(host: string): ClientHttp2Session | undefined {
    return this.#lines.get(host)?.findLast(({ session }) => !session.destroyed && !session.closed)?.session;
  }

  async #awaited(host: string, signal: AbortSignal): Promise<ClientHttp2Session | undefined> {
    const over = new AbortController();
    const waiting = { host, over };
    this.#waiting.add(waiting);
    await sleep(this.#clock, patienceMs, AbortSignal.any([over.signal, signal]));
    this.#waiting.delete(waiting);
    return this.#open(host);
  }

  /** Of a host that has been removed. */
  drop(host: string): void {
    for (const { session } of this.#lines.get(host) ?? []) session.destroy();
  }

  close(): void {
    for (const { over } of this.#waiting) over.abort();
    for (const lines of this.#lines.values()) for (const { session } of lines) session.destroy();
  }
}

function responseOf(stream: ClientHttp2Stream, host: string): Promise<IncomingHttpHeaders & { ':status'?: number }> {
  return new Promise((resolve, reject) => {
    stream.once('response', (headers) => {
      if (lengthOf(headers) <= headersLengthMax) return resolve(headers);
      stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
    });
    const fail = (cause?: unknown): void =>
      reject(new ApiError('HostUnreachable', `the line to host "${host}" broke; try again`, { cause }));
    stream.once('error', fail);
    stream.once('close', () => fail());
  });
}

/** The limit of the settings holds only from when the agent has acknowledged them. */
const headersLengthMax = 16 * 1024;

function lengthOf(headers: IncomingHttpHeaders): number {
  let length = 0;
  for (const [name, value] of Object.entries(headers)) length += name.length + String(value).length;
  return length;
}

const refusalBytesMax = 64 * 1024;

/** An agent's refusals are short. */
async function textOf(stream: ClientHttp2Stream): Promise<string> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of stream) {
    pieces.push(piece);
    bytes += piece.length;
    if (bytes > refusalBytesMax) break;
  }
  return Buffer.concat(pieces).toString();
}

function refusalOf(text: string, host: string): ApiError {
  try {
    const { code, message, details } = JSON.parse(text).error;
    // Of the details only the word that a client may act on.
    const [reason] = /^[A-Z][A-Za-z]{0,63}$/.exec(String(details?.reason)) ?? [];
    if (isErrorCode(code))
      return new ApiError(code, String(message).slice(0, 1024), reason === undefined ? {} : { details: { reason } });
  } catch {
    // not in our form; told below
  }
  return new ApiError('HostUnreachable', `host "${host}" gave no usable answer`);
}

function plain(headers: IncomingHttpHeaders): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) => (typeof value === 'string' ? [[name, value]] : [])),
  );
}
