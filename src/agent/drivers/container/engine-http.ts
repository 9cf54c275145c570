// HTTP over the unix socket of a container engine: one connection per call, bounded answers, errors with the engine's own
// message. It knows no endpoint and decides nothing.

import { type IncomingMessage, request } from 'node:http';
import { type Duplex, PassThrough, type Readable, type Writable } from 'node:stream';
import { type Static, type TSchema, Type } from 'typebox';
import { Check } from 'typebox/value';
import type { Clock } from '../../../base/clock.ts';
import { describeError } from '../../../base/log.ts';

/** A failure of the connection to the engine, or the engine's refusal. */
export class EngineError extends Error {
  override name = 'EngineError';
  /** Of the engine's answer; undefined: there was none, and it is unknown whether the call was carried out. */
  readonly status: number | undefined;
  constructor(message: string, status?: number) {
    super(message);
    this.status = status;
  }
}

export interface EngineCall {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'DELETE';
  /** Without the version. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Limit for the beginning of the answer; default: the connection's. 0: none. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

export interface EngineHttp {
  /** The JSON of the answer, checked against the schema. */
  json<Schema extends TSchema>(schema: Schema, call: EngineCall): Promise<Static<Schema>>;
  /** For answers of which only the status counts; 304 (nothing to change) is a success. */
  done(call: EngineCall): Promise<void>;
  /** One header of the answer, of a call without a body. */
  header(name: string, call: EngineCall): Promise<string>;
  /** Streams the body of the call. */
  upload(call: EngineCall): EngineUpload;
  /** Streams the body of the answer; ends when `signal` aborts or the caller stops reading. */
  stream(call: EngineCall): AsyncGenerator<Buffer>;
  /** The connection itself, after the engine has agreed to switch protocols. */
  hijack(call: EngineCall): Promise<Duplex>;
}

export interface EngineUpload {
  /** The caller must end or destroy it. */
  readonly body: Writable;
  /** Resolves when the engine has taken all of it and reported success. */
  readonly taken: Promise<void>;
}

export interface EngineHttpOptions {
  /** Resolved for each call: an engine may be installed meanwhile. Throws `EngineError`. */
  readonly socketPath: () => Promise<string>;
  readonly clock: Clock;
  readonly timeoutMs: number;
  /** "/v1.41"; empty: the engine's own. */
  readonly version: string;
}

/** A list of a thousand containers has half of this size. */
const answerBytesMax = 8 * 1024 * 1024;

const Refusal = Type.Object({ message: Type.String() });

export function createEngineHttp(options: EngineHttpOptions): EngineHttp {
  const open = (call: EngineCall, hijack: boolean): Promise<Opened> => openCall(options, call, { hijack });

  const whole = async (call: EngineCall): Promise<string> => {
    const { answer } = await open(call, false);
    const text = await bodyOf(answer, call);
    const status = answer.statusCode ?? 0;
    if (status < 400) return text;
    throw refusal(call, status, text);
  };

  return {
    async json(schema, call) {
      const text = await whole(call);
      const value = parsed(text);
      if (Check(schema, value)) return value;
      throw new EngineError(
        `${nameOf(call)}: the container engine answered what makes no sense: ${text.slice(0, 200)}`,
      );
    },
    async done(call) {
      await whole(call);
    },
    async header(name, call) {
      const { answer } = await open(call, false);
      answer.resume();
      const status = answer.statusCode ?? 0;
      if (status >= 400) throw refusal(call, status, '');
      const value = answer.headers[name];
      if (typeof value === 'string') return value;
      throw new EngineError(`${nameOf(call)}: the container engine did not say ${name}`);
    },
    upload(call) {
      const body = new PassThrough();
      const taken = openCall(options, call, { upload: body }).then(async ({ answer }) => {
        const text = await bodyOf(answer, call);
        const status = answer.statusCode ?? 0;
        if (status >= 400) throw refusal(call, status, text);
      });
      taken.catch(() => {}).finally(() => body.destroy()); // after its answer the engine takes no more data
      return { body, taken };
    },
    async *stream(call) {
      const { answer } = await open(call, false);
      const status = answer.statusCode ?? 0;
      if (status >= 400) throw refusal(call, status, await bodyOf(answer, call));
      try {
        for await (const piece of answer) if (Buffer.isBuffer(piece)) yield piece;
      } catch (error) {
        if (call.signal?.aborted) return;
        throw new EngineError(`${nameOf(call)}: the container engine broke off: ${describeError(error)}`);
      } finally {
        answer.destroy();
      }
    },
    async hijack(call) {
      const { answer, socket } = await open(call, true);
      if (socket !== undefined) return socket;
      throw refusal(call, answer.statusCode ?? 0, await bodyOf(answer, call));
    },
  };
}

interface Opened {
  readonly answer: IncomingMessage;
  /** Set when the engine has switched protocols. */
  readonly socket?: Duplex;
}

async function openCall(
  options: EngineHttpOptions,
  call: EngineCall,
  { hijack = false, upload }: { readonly hijack?: boolean; readonly upload?: Readable },
): Promise<Opened> {
  const { clock, version } = options;
  const socketPath = await options.socketPath();
  const timeoutMs = call.timeoutMs ?? (upload === undefined ? options.timeoutMs : 0);
  return new Promise((resolve, reject) => {
    if (call.signal?.aborted) return reject(new EngineError(`${nameOf(call)}: given up`));
    const body = call.body === undefined ? undefined : Buffer.from(JSON.stringify(call.body));
    const query = new URLSearchParams(call.query).toString();
    const outgoing = request({
      socketPath,
      method: call.method,
      path: `${version}${call.path}${query === '' ? '' : `?${query}`}`,
      agent: false, // a kept connection would break when the engine restarts
      headers: {
        ...call.headers,
        host: 'engine',
        ...(body === undefined ? {} : { 'content-type': 'application/json', 'content-length': body.length }),
        ...(upload === undefined ? {} : { 'content-type': 'application/x-tar' }),
        ...(hijack ? { connection: 'Upgrade', upgrade: 'tcp' } : {}),
      },
    });
    const late = `the container engine at ${socketPath} did not answer within ${timeoutMs} ms`;
    const timer =
      timeoutMs === 0 ? undefined : clock.setTimer(timeoutMs, () => end(new EngineError(`${nameOf(call)}: ${late}`)));
    const settle = (): void => timer?.cancel();
    const end = (error: EngineError): void => {
      settle();
      reject(error); // does nothing after the answer
      outgoing.destroy();
    };
    const abort = (): void => end(new EngineError(`${nameOf(call)}: given up`));
    call.signal?.addEventListener('abort', abort, { once: true });
    outgoing.once('close', () => call.signal?.removeEventListener('abort', abort));
    outgoing.on('error', (error) =>
      end(new EngineError(`${nameOf(call)}: cannot reach the container engine at ${socketPath}: ${error.message}`)),
    );
    outgoing.once('response', (answer) => {
      settle();
      resolve({ answer });
    });
    outgoing.once('upgrade', (answer, socket, head) => {
      settle();
      if (head.length > 0) socket.unshift(head);
      resolve({ answer, socket });
    });
    if (upload === undefined) return void outgoing.end(body);
    upload.once('close', () => {
      if (!upload.readableEnded) outgoing.destroy(); // the sender has given up: half an archive must not count as complete
    });
    upload.pipe(outgoing);
  });
}

async function bodyOf(answer: IncomingMessage, call: EngineCall): Promise<string> {
  const pieces: Buffer[] = [];
  let length = 0;
  try {
    for await (const piece of answer) {
      if (!Buffer.isBuffer(piece)) continue;
      length += piece.length;
      if (length > answerBytesMax) throw new Error(`it is longer than ${answerBytesMax} bytes`);
      pieces.push(piece);
    }
  } catch (error) {
    throw new EngineError(`${nameOf(call)}: cannot read the container engine's answer: ${describeError(error)}`);
  }
  return Buffer.concat(pieces).toString('utf8');
}

function refusal(call: EngineCall, status: number, text: string): EngineError {
  const value = parsed(text);
  const said = Check(Refusal, value) ? value.message : text.trim();
  return new EngineError(`${nameOf(call)}: ${said === '' ? `status ${status}` : said.slice(0, 2000)}`, status);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // not JSON: no schema fits it
  }
}

/** Without query, headers and body, which may hold secrets. */
const nameOf = ({ method, path }: EngineCall): string => `${method} ${path}`;
