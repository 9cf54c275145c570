// Agent links: connections that agents open and upgrade. On each, the agent is the HTTP/2 server and the control plane the client.

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

/** An agent connects again within a second; requests wait for it. */
const patienceMs = 2000;
/** Clients connected to guests of one host at a time: half of the agent's limit of streams. */
const openMax = 512;
/** Time until an answer begins: an agent may copy a disk first. */
const answerMsMax = 600_000;
/** Far more than a server has addresses. Only the agent notices that a link was lost without a packet. */
const linesMax = 8;
/** Window of one link, for all its streams: with HTTP/2's default of 64 KiB, each few frames would wait for an acknowledgement. */
const lineWindowBytes = 8 * 1024 * 1024;

/** Limits on memory that an agent can make this side use. Agents send few headers, never push, and open no streams. */
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
  /** Epoch of the session in which the agent opened the link. */
  readonly epoch: number;
}

export class AgentLinks implements HostLinks {
  /** By host, the newest last. An agent that knows several addresses of this server has a link to each. */
  readonly #lines = new Map<string, readonly Line[]>();
  /** By host: number of clients connected to its guests. */
  readonly #opened = new Map<string, number>();
  /** Requests that wait for the link of a host. */
  readonly #waiting = new Set<{ readonly host: string; readonly over: AbortController }>();
  readonly #clock: Clock;
  readonly #log: Logger;

  constructor({ clock, log }: { readonly clock: Clock; readonly log: Logger }) {
    this.#clock = clock;
    this.#log = log;
  }

  /** Takes over an upgraded connection. Ends the links of earlier sessions of the host, and the oldest when there are too many. */
  accept(host: string, socket: Duplex, epoch: number): void {
    const session = connect('http://agent', { createConnection: () => socket, ...sessionLimits });
    session.once('connect', () => {
      if (!session.destroyed) session.setLocalWindowSize(lineWindowBytes); // a newer link may have replaced it
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

  /** Sends a request that must be answered with 200. */
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
    stream.on('error', () => {}); // the reader gets the error too
    stream.on('headers', () => stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM)); // agents send no interim answers
    const overdue = this.#clock.setTimer(answerMsMax, () => stream.close(constants.NGHTTP2_CANCEL));
    try {
      const headers = await responseOf(stream, host);
      if (headers[':status'] === 200) return { headers, stream };
      stream.end(); // the request has no further body
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

  /** Closes the links of a host that has been removed. */
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

/** The limit in the settings applies only once the agent has acknowledged them. */
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
    // Of the details, only the code that a client may act on.
    const [reason] = /^[A-Z][A-Za-z]{0,63}$/.exec(String(details?.reason)) ?? [];
    if (isErrorCode(code))
      return new ApiError(code, String(message).slice(0, 1024), reason === undefined ? {} : { details: { reason } });
  } catch {
    // not in our form: handled below
  }
  return new ApiError('HostUnreachable', `host "${host}" gave no usable answer`);
}

function plain(headers: IncomingHttpHeaders): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) => (typeof value === 'string' ? [[name, value]] : [])),
  );
}
