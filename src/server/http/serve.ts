// HTTP: Fastify in front of the routes. Identifies the sender, parses bodies and serializes answers; decides nothing.

import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import type { Carried } from '../../base/carried.ts';
import { drained } from '../../base/drained.ts';
import { describeError, type Logger } from '../../base/log.ts';
import { ApiError } from '../../api/errors.ts';
import { serversHeader } from '../../api/servers.ts';
import { type Identity, may } from '../../core/access/access.ts';
import { allow, bodyBytesMax, toApiError } from './exchange.ts';
import { parseJsonBody } from './json-body.ts';
import type { Connections } from './connections/connections.ts';
import type { GuestAccess } from './guest-access.ts';
import {
  hasBodyLeft,
  nothingAt,
  refuseBody,
  refuseConnection,
  refuseUnreadable,
  refuseUnusual,
} from './connections/refusals.ts';
import { type Answer, Query, type Route, type RouteRequest } from './route.ts';
import { sinkOf } from './connections/response-sink.ts';
import type { Source } from './connections/sink.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The owner of its token; undefined without a valid token. */
    identity: Identity | undefined;
  }
}

export interface HttpParts {
  readonly routes: readonly Route[];
  identify(authorization: string | undefined): Identity | undefined;
  /** The current session of a host. */
  epochOf(host: string): number | undefined;
  /** Takes over a connection that the agent of `host` opened in this session. */
  acceptLink(host: string, socket: Duplex, epoch: number): void;
  readonly access: GuestAccess;
  readonly connections: Connections;
  /** Every server of the fleet, for clients that know this one: the value of `berth-servers`. */
  readonly servers?: () => string | undefined;
  /** Called with the number of bytes that pass to and from guests. */
  readonly carried?: Carried;
  readonly log: Logger;
  /** If given, only HTTPS is served. */
  readonly tls?: TlsIdentity;
}

/** PEM texts. */
export interface TlsIdentity {
  readonly cert: string;
  readonly key: string;
}

/**
 * Connections that may wait to be accepted: as many as the kernel allows (listen(2); 4096 on Linux). When a server comes back, its whole
 * fleet connects at once, and a connection that the kernel drops is retried after 1, 2, 4 s (RFC 6298).
 */
const backlog = 65_535;

const linkPath = /^\/v1\/hosts\/([a-z0-9-]{1,63})\/link\?epoch=(\d{1,15})$/;

/** Listens on the returned `url`, and serves the routes. */
export async function serveHttp(
  parts: HttpParts,
  listen: { host: string; port: number },
): Promise<{ url: string; close(): Promise<void> }> {
  const app = createApp(parts);
  readBodies(app, parts.routes);
  answerFaults(app, parts);
  refuseUnusual(app.server);
  app.decorateRequest('identity');
  admitRequests(app, parts);
  for (const route of parts.routes) addRoute(app, route, parts);
  app.server.on('connection', (socket: Socket) => parts.connections.opened(socket));
  app.server.on('upgrade', (request, socket, head) => upgrade(request, socket, head, parts));
  try {
    const url = await app.listen({ ...listen, backlog });
    return {
      url,
      async close() {
        await app.close();
        parts.connections.unread.stop();
      },
    };
  } catch (error) {
    await app.close();
    throw describeListening(error, listen);
  }
}

function createApp({ tls, log }: HttpParts): FastifyInstance {
  return Fastify({
    bodyLimit: bodyBytesMax,
    forceCloseConnections: true,
    requestTimeout: 60_000,
    return503OnClosing: false,
    clientErrorHandler: refuseUnreadable,
    frameworkErrors: (error, request, reply) => sendError(toApiError(error), request, reply, log),
    // A request without a host is refused in admitRequests, in the form of our errors.
    ...(tls === undefined
      ? { http: { requireHostHeader: false } }
      : { https: { ...tls, minVersion: 'TLSv1.2', requireHostHeader: false } }),
  });
}

/** JSON, and bytes on the routes that take them. */
function readBodies(app: FastifyInstance, routes: readonly Route[]): void {
  const takingBytes = new Set(routes.filter((route) => route.takesBytes).map(({ path }) => path));
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(
    /^application\/json(?:;\s*charset=utf-8)?$/i,
    { parseAs: 'string' },
    (request, body, done) => {
      if (request.headers['content-encoding'] !== undefined)
        return done(new ApiError('UnsupportedMediaType', 'compressed bodies are not taken'));
      try {
        done(null, parseJsonBody(String(body)));
      } catch (error) {
        done(toApiError(error));
      }
    },
  );
  app.addContentTypeParser('application/octet-stream', (request, payload, done) => {
    if (takingBytes.has(request.routeOptions.url ?? '')) done(null, payload);
    else done(new ApiError('UnsupportedMediaType', 'the body must be application/json'));
  });
}

function answerFaults(app: FastifyInstance, { routes, log }: HttpParts): void {
  app.setErrorHandler((error, request, reply) =>
    sendError(toApiError(error, request.routeOptions.bodyLimit), request, reply, log),
  );
  app.setNotFoundHandler((request, reply) => {
    const { error, allow: methods } = nothingAt(routes, request.method, pathOf(request.url));
    if (methods !== undefined) reply.header('allow', methods);
    sendError(error, request, reply, log);
  });
}

/** Identifies the sender, and queues the request behind earlier ones on its connection. */
function admitRequests(app: FastifyInstance, { connections, identify, routes }: HttpParts): void {
  const brief = new Set(routes.filter((route) => route.answersBriefly).map(({ method, path }) => method + path));
  const answersBriefly = ({ url, method, routeOptions }: FastifyRequest): boolean =>
    brief.has(method + routeOptions.url) && !url.includes('dryRun');
  app.addHook('onRequest', (request, reply, done) => {
    const { socket } = request.raw;
    request.identity = identify(request.headers.authorization);
    if (request.identity) connections.authenticate(socket);
    else connections.busy(socket, (ended) => reply.raw.once('close', ended));
    const { host } = request.headers;
    const fault = host === undefined && request.raw.httpVersion === '1.1' ? noHost : undefined;
    connections.pipelines.enter(
      socket,
      reply.raw,
      () => answersBriefly(request),
      () => done(fault),
    );
  });
}

/** Throws `InvalidRequest` when this address cannot be listened on now. For callers that do much before they listen. */
export async function checkListen(listen: { readonly host: string; readonly port: number }): Promise<void> {
  const probe = createServer().listen(listen);
  try {
    await once(probe, 'listening');
  } catch (error) {
    throw describeListening(error, listen);
  } finally {
    probe.close();
  }
}

/** The usual causes, with what the user can do. */
function describeListening(error: unknown, { host, port }: { readonly host: string; readonly port: number }): unknown {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  const why =
    code === 'EADDRINUSE'
      ? 'another program listens there already, perhaps another Berth; stop it'
      : code === 'EADDRNOTAVAIL'
        ? 'this machine has no such address; name one that it has'
        : code === 'EACCES'
          ? 'ports below 1024 are for root; choose a higher one'
          : undefined;
  if (why === undefined) return error;
  const message = `listen: cannot listen on ${host}:${port}: ${why}, or set another address with --listen`;
  return new ApiError('InvalidRequest', message, { field: 'listen', cause: error });
}

function addRoute(app: FastifyInstance, route: Route, parts: HttpParts): void {
  const hasParams = route.path.includes(':');
  app.route({
    method: route.method,
    url: route.path,
    ...(route.bodyBytesMax === undefined ? {} : { bodyLimit: route.bodyBytesMax }),
    // Before the body is read: a body without permission is not read.
    onRequest(request, _reply, done) {
      try {
        allow(route, request.identity, hasParams ? paramsOf(request)['host'] : undefined);
        done();
      } catch (error) {
        done(toApiError(error));
      }
    },
    async handler(request, reply) {
      const params = hasParams ? paramsOf(request) : noParams;
      const identity = allow(route, request.identity, params['host']);
      const servers = route.verb === 'open' ? undefined : parts.servers?.();
      if (servers !== undefined) reply.raw.setHeader(serversHeader, servers);
      const answer = await route.handle(new ServedRequest(request, reply, { params, identity }));
      if ('json' in answer) sendJson(answer, request, reply, parts.connections);
      else if ('lines' in answer && answer.texts) await sendTold(answer.status, answer.texts, reply, parts.log);
      else await sendStream(answer, request, reply, parts.log);
      return reply;
    },
  });
}

const noHost = new ApiError('InvalidRequest', 'the header Host is missing; HTTP/1.1 needs one');

const noParams: Readonly<Record<string, string>> = {};

/** Fields that few routes use are computed on demand. */
class ServedRequest implements RouteRequest {
  readonly params: Readonly<Record<string, string>>;
  readonly query: Query;
  readonly body: unknown;
  readonly identity: Identity;
  readonly #request: FastifyRequest;
  readonly #reply: FastifyReply;
  #headers: Readonly<Record<string, string | undefined>> | undefined;

  constructor(
    request: FastifyRequest,
    reply: FastifyReply,
    { params, identity }: { params: Readonly<Record<string, string>>; identity: Identity },
  ) {
    const { url, body } = request;
    const question = url.indexOf('?');
    this.params = params;
    this.query = question < 0 ? noQuery : new Query(new URLSearchParams(url.slice(question + 1)));
    this.body = body ?? {};
    this.identity = identity;
    this.#request = request;
    this.#reply = reply;
  }

  get headers(): Readonly<Record<string, string | undefined>> {
    this.#headers ??= singleHeaders(this.#request.raw);
    return this.#headers;
  }

  get signal(): AbortSignal {
    return signalOf(this.#reply);
  }
}

const noQuery = new Query([]);

function singleHeaders(request: IncomingMessage): Readonly<Record<string, string | undefined>> {
  const headers: Record<string, string | undefined> = {};
  for (const [name, value] of Object.entries(request.headers))
    headers[name] = Array.isArray(value) ? value.join(', ') : value;
  return headers;
}

/** Aborts when the answer has ended or its connection is closed. */
function signalOf({ raw }: FastifyReply): AbortSignal {
  const gone = new AbortController();
  if (raw.destroyed) gone.abort();
  else raw.once('close', () => gone.abort());
  return gone.signal;
}

function paramsOf(request: FastifyRequest): Record<string, string> {
  const { params } = request;
  return typeof params === 'object' && params !== null
    ? Object.fromEntries(Object.entries(params).map(([name, value]) => [name, String(value)]))
    : {};
}

/** Bypasses the library: its own sending costs as much as the rest of its work on a request. */
function sendJson(
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
  });
  reply.raw.end(text);
  unread.sent(request.raw.socket, reply.raw, text.byteLength);
}

/** Sends lines as they are produced. */
async function sendTold(status: number, texts: Source<Uint8Array>, reply: FastifyReply, log: Logger): Promise<void> {
  const signal = signalOf(reply);
  const { raw } = reply;
  reply.hijack();
  raw.writeHead(status, linesHeaders);
  raw.flushHeaders();
  const sink = sinkOf(raw);
  try {
    await texts(sink, signal);
  } catch (error) {
    writeFailure(raw, error, log);
  } finally {
    raw.end();
  }
}

async function sendStream(
  answer: Exclude<Answer, { json: unknown }>,
  request: FastifyRequest,
  reply: FastifyReply,
  log: Logger,
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
  try {
    for (let piece = first; !piece.done; piece = await pieces.next()) {
      if (raw.destroyed) break;
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

function sendError(error: ApiError, request: FastifyRequest, reply: FastifyReply, log: Logger): void {
  if (error.code === 'Internal')
    log.error('request failed', {
      method: request.method,
      path: pathOf(request.url),
      error: describeError(error.cause),
      stack: error.cause instanceof Error ? error.cause.stack : undefined,
    });
  if (error.status === 503 || error.status === 429) reply.header('retry-after', '1');
  if (error.status === 415) reply.header('connection', 'close');
  if (hasBodyLeft(request.raw)) {
    reply.hijack();
    for (const [name, value] of Object.entries(reply.getHeaders()))
      if (value !== undefined) reply.raw.setHeader(name, value);
    return refuseBody(request.raw, reply.raw, error);
  }
  reply
    .code(error.status)
    .header('content-type', 'application/json; charset=utf-8')
    .send(JSON.stringify(error.toBody()));
}

function pathOf(url: string): string {
  return url.split('?', 1)[0] ?? '';
}

/** Upgraded connections: an agent's link, and a client's connection to a guest. */
function upgrade(request: IncomingMessage, socket: Duplex, head: Buffer, parts: HttpParts): void {
  const { identify, access, connections, log, carried = () => {} } = parts;
  socket.on('error', (error) => log.debug('an upgraded connection broke', { error: describeError(error) }));
  const { url = '', headers } = request;
  if (!access.knows(url) || headers.upgrade?.toLowerCase() !== 'websocket') return upgradeLink(request, socket, parts);
  const gone = new AbortController();
  socket.once('close', () => gone.abort());
  const identity = identify(headers.authorization);
  if (identity) connections.authenticate(request.socket);
  access
    .open({ path: url, headers: singleHeaders(request), identity, signal: gone.signal })
    .then((guest) => {
      connections.authenticate(request.socket); // by a ticket, if not by a token
      guest.on('error', () => socket.destroy());
      guest.on('close', () => socket.end());
      socket.on('close', () => guest.destroy());
      if (socket.destroyed) return void guest.destroy();
      if (head.length > 0) socket.unshift(head);
      const count = (piece: Uint8Array): void => carried(piece.length);
      socket.on('data', count).pipe(guest).on('data', count).pipe(socket);
    })
    .catch((error: unknown) => {
      const refusal = toApiError(error);
      if (refusal.code === 'Internal') log.error('no way into a guest', { error: describeError(refusal.cause) });
      refuseConnection(socket, refusal);
    });
}

function upgradeLink(request: IncomingMessage, socket: Duplex, parts: HttpParts): void {
  const { identify, connections, epochOf, acceptLink } = parts;
  const [, host, epoch] = linkPath.exec(request.url ?? '') ?? [];
  const identity = identify(request.headers.authorization);
  if (host === undefined || request.headers.upgrade !== 'berth-agent/1')
    return refuseConnection(socket, new ApiError('NotFound', `there is nothing at ${pathOf(request.url ?? '')}`));
  if (!identity) return refuseConnection(socket, new ApiError('Unauthenticated', 'a valid token is needed'));
  connections.authenticate(request.socket);
  if (!may(identity, 'agent', host))
    return refuseConnection(socket, new ApiError('Forbidden', 'this token does not permit that'));
  // An agent whose session is over must not take the link of the next session.
  if (epochOf(host) !== Number(epoch))
    return refuseConnection(socket, new ApiError('StaleEpoch', 'the host has registered again since'));
  // Passed on only after it is written: HTTP/2 takes the socket's handle, and Node aborts when a pending write to a TLS socket loses it.
  const agreed = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: berth-agent/1\r\n\r\n';
  socket.write(agreed, () => acceptLink(host, socket, Number(epoch)));
}
