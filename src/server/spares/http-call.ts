// One HTTP request to another system: bounded in time and in what is read, without redirects and proxies, and on request only to addresses
// that a guard allows. A status is an answer; it throws an `Error` when there is none. Its messages never contain the request.

import { type IncomingMessage, request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { LookupFunction } from 'node:net';
import type { Clock } from '../../base/clock.ts';
import { describeError } from '../../base/log.ts';

export interface HttpCall {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Authorities in PEM; absent: those that Node trusts. */
  readonly ca?: string;
  /** Why the address of an established connection is refused; undefined: it is not. */
  readonly whyNot?: (address: string) => string | undefined;
  readonly lookup?: LookupFunction;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

export interface HttpAnswer {
  readonly status: number;
  readonly header: (name: string) => string | undefined;
  /** At most `bytesMax`. */
  readonly text: string;
}

/** There was no answer. `sent`: the other side may have the request. */
export class NoAnswer extends Error {
  override name = 'NoAnswer';
  readonly sent: boolean;

  constructor(message: string, { sent, cause }: { readonly sent: boolean; readonly cause?: unknown }) {
    super(message, { cause });
    this.sent = sent;
  }
}

const timeoutMsDefault = 15_000;
const bytesMax = 1_048_576;
const headerBytesMax = 16_384;

export function httpCall(clock: Clock, call: HttpCall): Promise<HttpAnswer> {
  const { timeoutMs = timeoutMsDefault, signal } = call;
  if (signal?.aborted) return Promise.reject(new NoAnswer('it was stopped', { sent: false }));
  return new Promise((resolve, reject) => {
    let sent = false;
    let stopped: Error | undefined;
    const outgoing = requestOf(call);
    const fail = (error: unknown): void => {
      const cause = stopped ?? error; // what is destroyed only says that it was aborted
      reject(new NoAnswer(describeError(cause).slice(0, 200), { sent, cause }));
    };
    const stop = (why: string): void => {
      stopped ??= new Error(why);
      outgoing.destroy(stopped);
    };
    const timer = clock.setTimer(timeoutMs, () => stop(`no answer within ${timeoutMs / 1000} s`));
    const abort = (): void => stop('it was stopped');
    signal?.addEventListener('abort', abort, { once: true });
    outgoing.once('close', () => {
      timer.cancel();
      signal?.removeEventListener('abort', abort);
    });
    outgoing.on('error', fail);
    outgoing.once('socket', (socket) => {
      socket.once(call.url.startsWith('https:') ? 'secureConnect' : 'connect', () => {
        const why = call.whyNot?.(socket.remoteAddress ?? '');
        if (why !== undefined) return stop(why);
        sent = true;
        outgoing.end(call.body);
      });
    });
    outgoing.once('response', (incoming) => {
      read(incoming).then((text) => {
        const { statusCode: status = 0, headers } = incoming;
        const header = (name: string): string | undefined => [headers[name] ?? []].flat()[0];
        resolve({ status, header, text });
      }, fail);
    });
  });
}

function requestOf({ method, url, headers, body, ca, lookup }: HttpCall) {
  const secure = url.startsWith('https:');
  return (secure ? httpsRequest : httpRequest)(url, {
    method,
    headers: {
      accept: 'application/json',
      'user-agent': 'berth',
      ...headers,
      ...(body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }),
    },
    agent: false, // a new connection each time: its address is checked once more
    maxHeaderSize: headerBytesMax,
    ...(ca === undefined ? {} : { ca }),
    ...(lookup === undefined ? {} : { lookup }),
  });
}

/** The whole body. Fails when it is too large, or ends early. */
async function read(incoming: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of incoming) {
    const bytes: Buffer = chunk;
    size += bytes.length;
    if (size > bytesMax) throw new Error(`the answer is over ${bytesMax} bytes`);
    chunks.push(bytes);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** The body as JSON; undefined: it is none. */
export function jsonOf({ text }: Pick<HttpAnswer, 'text'>): unknown {
  try {
    const json: unknown = JSON.parse(text);
    return json;
  } catch {
    return undefined; // the caller says what it expected
  }
}
