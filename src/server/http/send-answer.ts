// Writes answers to connections: JSON, lines as they are produced, bytes, and errors.

import { traceParentIn } from '../../base/tracing/trace-parent.ts';
import { requestTraceId } from '../tracing/request-trace.ts';
import type { ServerResponse } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type ApiError, retryAfterOf } from '../../api/errors.ts';
import { drained } from '../../base/drained.ts';
import { describeError, type Logger } from '../../base/log.ts';
import type { Connections } from './connections/connections.ts';
import { hasBodyLeft, refuseBody } from './connections/refusals.ts';
import { sinkOf } from './connections/response-sink.ts';
import type { Source } from './connections/sink.ts';
import { toApiError } from './exchange.ts';
import { pathOf } from './request-parts.ts';
import type { Answer } from './route.ts';

/** Aborts when the answer has ended or its connection is closed. */
export function signalOf({ raw }: FastifyReply): AbortSignal {
  const gone = new AbortController();
  if (raw.destroyed) gone.abort();
  else raw.once('close', () => gone.abort());
  return gone.signal;
}

/** Bypasses Fastify: its `send` costs as much as the rest of its work on a request. */
export function sendJson(
  answer: Extract<Answer, { json: unknown }>,
  request: FastifyRequest,
  reply: FastifyReply,
  { unread }: Connections,
): void {
  const text = answer.text ?? Buffer.from(JSON.stringify(answer.json));
  const { status } = answer;
  reply.hijack();
  reply.raw.writeHead(status, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': text.byteLength,
    ...answer.headers,
  });
  reply.raw.end(text);
  unread.sent(request.raw.socket, reply.raw, text.byteLength);
}

/** Resolves when a streamed answer is over: its connection was closed, or it was ended, with the reason. */
export class Over {
  readonly #ended = new AbortController();
  #why: ApiError | undefined;

  constructor({ raw }: FastifyReply) {
    if (raw.destroyed) this.#ended.abort();
    else raw.once('close', () => this.#ended.abort());
  }

  get signal(): AbortSignal {
    return this.#ended.signal;
  }

  get why(): ApiError | undefined {
    return this.#why;
  }

  end(why: ApiError): void {
    if (this.signal.aborted) return;
    this.#why = why;
    this.#ended.abort();
  }
}

interface Ongoing {
  readonly over: Over;
  readonly log: Logger;
}

/** Sends lines as they are produced. */
export async function sendTold(
  status: number,
  texts: Source<Uint8Array>,
  reply: FastifyReply,
  { over, log }: Ongoing,
): Promise<void> {
  const { raw } = reply;
  reply.hijack();
  raw.writeHead(status, linesHeaders);
  raw.flushHeaders();
  const sink = sinkOf(raw);
  const cut = (): void => {
    if (raw.socket?.writableNeedDrain) raw.destroy(); // its client does not read: waiting for it could take for ever
  };
  over.signal.addEventListener('abort', cut);
  try {
    await texts(sink, over.signal);
    if (over.why) writeFailure(raw, over.why, log);
  } catch (error) {
    writeFailure(raw, error, log);
  } finally {
    raw.end();
  }
}

export async function sendStream(
  answer: Exclude<Answer, { json: unknown }>,
  request: FastifyRequest,
  reply: FastifyReply,
  { over, log }: Ongoing,
): Promise<void> {
  const stream = 'lines' in answer ? encodeLines(answer.lines) : answer.bytes;
  const pieces = stream[Symbol.asyncIterator]();
  // Until the first piece exists, a failure can still be reported by the status.
  const first = await pieces.next();
  reply.hijack();
  const { raw } = reply;
  raw.writeHead(
    answer.status,
    'lines' in answer
      ? linesHeaders
      : { 'content-type': 'application/octet-stream', 'cache-control': 'no-store', ...answer.headers },
  );
  raw.flushHeaders();
  const cut = (): void => {
    if (!over.why) return;
    if (!('lines' in answer)) return void raw.destroy(); // a regular end would look like a complete body
    writeFailure(raw, over.why, log);
    raw.end();
  };
  over.signal.addEventListener('abort', cut);
  try {
    for (let piece = first; !piece.done; piece = await pieces.next()) {
      if (raw.destroyed || over.why) break;
      if (!raw.write(piece.value)) await drained(raw);
    }
  } catch (error) {
    if ('lines' in answer) writeFailure(raw, error, log);
    else log.debug('stream ended early', { path: pathOf(request.url), error: toApiError(error).message });
  } finally {
    raw.end();
    await pieces.return?.();
  }
}

const linesHeaders = { 'content-type': 'application/x-ndjson', 'cache-control': 'no-store' };

/** Reports a failure as the last line. */
function writeFailure(raw: ServerResponse, error: unknown, log: Logger): void {
  const apiError = toApiError(error);
  log.debug('lines ended early', { path: pathOf(raw.req.url ?? ''), error: apiError.message });
  raw.write(`${JSON.stringify(apiError.toBody())}\n`);
}

async function* encodeLines(lines: AsyncIterable<unknown>): AsyncIterable<string> {
  for await (const line of lines) yield `${JSON.stringify(line)}\n`;
}

export function sendError(error: ApiError, request: FastifyRequest, reply: FastifyReply, log: Logger): void {
  const traceParent = traceParentIn(request.headers['traceparent']);
  const traceId = requestTraceId({ traceParent, requestId: request.id });
  if (error.code === 'Internal')
    log.error('request failed', {
      request: request.id,
      trace: traceId,
      method: request.method,
      path: pathOf(request.url),
      error: describeError(error.cause),
      stack: error.cause instanceof Error ? error.cause.stack : undefined,
    });
  const retryAfterS = retryAfterOf(error);
  if (retryAfterS !== undefined) reply.header('retry-after', String(retryAfterS));
  if (error.status === 415) reply.header('connection', 'close');
  if (hasBodyLeft(request.raw)) {
    reply.hijack();
    for (const [name, value] of Object.entries(reply.getHeaders()))
      if (value !== undefined) reply.raw.setHeader(name, value);
    return refuseBody(request.raw, reply.raw, error, traceId);
  }
  reply
    .code(error.status)
    .header('content-type', 'application/json; charset=utf-8')
    .send(JSON.stringify(error.toBody(traceId)));
}
