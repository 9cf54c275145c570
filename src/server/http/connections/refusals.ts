// Refusals of what never becomes a request: text that is no HTTP, headers that are too large or too late, upgrades. They look like every other
// error. And what is left of a body whose request was refused: it is read and thrown away, so that its client gets to read why.

import { type IncomingMessage, type Server, ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { ApiError, retryAfterOf } from '../../../api/errors.ts';
import { methodsAt, type Route } from '../route.ts';

/** Eight times the largest body. The connection of a client that sends more is closed, and the client may not get to read the answer. */
const discardBytesMax = 64 * 1024 * 1024;
const jsonHeaders = { 'content-type': 'application/json; charset=utf-8' };

/** The last words on a connection. */
export function refuseConnection(socket: Duplex, error: ApiError): void {
  const body = JSON.stringify(error.toBody());
  const retryAfterS = retryAfterOf(error);
  const retry = retryAfterS === undefined ? '' : `Retry-After: ${retryAfterS}\r\n`;
  const status = `${error.status} ${STATUS_CODES[error.status] ?? 'Error'}`;
  socket.end(
    `HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(body)}\r\n${retry}\r\n${body}`,
  );
}

/** For `clientError`: what came cannot be read as HTTP. */
export function refuseUnreadable(error: Error, socket: Duplex): void {
  const code = 'code' in error ? error.code : undefined;
  // An answer that has begun must not get another one into its middle.
  const underWay: unknown = Reflect.get(socket, '_httpMessage');
  const free = !(underWay instanceof ServerResponse) || !underWay.headersSent;
  if (code === 'ECONNRESET' || !socket.writable || !free) return void socket.destroy();
  refuseConnection(socket, describe(code, error));
  socket.once('finish', () => socket.destroy());
}

function describe(code: unknown, { message }: Error): ApiError {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return new ApiError(
        'HeadersTooLarge',
        'the headers are over 16 KiB; shorten the URL, the token or other headers',
      );
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return new ApiError('PayloadTooLarge', 'the chunk extensions of the body are over 16 KiB; send none');
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new ApiError(
        'RequestTimeout',
        'no complete request arrived within 60 s; send it again on a new connection',
      );
    case 'HPE_INVALID_CONTENT_LENGTH':
      return new ApiError(
        'InvalidRequest',
        'this cannot be read as HTTP: the content-length header must be an integer of at least 0',
      );
    default:
      return new ApiError('InvalidRequest', `this cannot be read as HTTP: ${message.replace(/^Parse Error: /, '')}`);
  }
}

/** Refuses what Node would refuse itself, in another form. */
export function refuseUnusual(server: Server): void {
  server.on('connect', (request, socket) =>
    refuseConnection(
      socket,
      new ApiError('MethodNotAllowed', `CONNECT is not possible: ${request.url} is not a proxy`),
    ),
  );
  server.on('checkExpectation', (request, response) => {
    const { expect } = request.headers;
    const error = new ApiError('InvalidRequest', `the header "Expect: ${expect}" is not known; leave it out`);
    refuseBody(request, response, error);
  });
}

/** What there is at the path, with which methods: for a request that no route takes. */
export function nothingAt(routes: readonly Route[], method: string, path: string): { error: ApiError; allow?: string } {
  const known = methodsAt(routes, path);
  if (known.length === 0) return { error: new ApiError('NotFound', `there is nothing at ${method} ${path}`) };
  const allow = known.flatMap((name) => (name === 'GET' ? ['GET', 'HEAD'] : [name])).join(', ');
  return { error: new ApiError('MethodNotAllowed', `${method} is not possible on ${path}; use ${allow}`), allow };
}

/** Whether the rest of the body is read. Not for uploads: no client should send gigabytes to learn of a refusal. */
export function hasBodyLeft({ complete, headers }: IncomingMessage): boolean {
  if (complete || (headers['content-type'] ?? '').startsWith('application/octet-stream')) return false;
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/**
 * Sends the error at once, and ends the answer when the rest of the body has come and was thrown away: the system resets a connection that is closed
 * with bytes unread, and its client would lose the answer.
 */
export function refuseBody(
  request: IncomingMessage,
  response: ServerResponse,
  error: ApiError,
  traceId?: string,
): void {
  const body = JSON.stringify(error.toBody(traceId));
  response.writeHead(error.status, { ...jsonHeaders, 'content-length': Buffer.byteLength(body) });
  response.write(body);
  let leftBytes = discardBytesMax;
  request.on('data', (piece: Uint8Array) => {
    leftBytes -= piece.byteLength;
    if (leftBytes < 0) request.socket.destroy();
  });
  request.on('error', () => {}); // it has its answer
  request.once('close', () => response.end());
}
