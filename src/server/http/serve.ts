// HTTP: Fastify in front of the routes. Identifies the sender, parses bodies and serializes answers; decides nothing.

import { traceParentIn } from '../../base/tracing/trace-parent.ts';
import { constants } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { Server as TlsServer } from 'node:tls';
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { ApiError } from '../../api/errors.ts';
import { authoritiesHeader } from '../../api/trust/authority.ts';
import { serversHeader } from '../../api/client/servers.ts';
import { accessVersion } from '../../core/access/rights-of.ts';
import type { Principal } from '../../core/access/principal.ts';
import { isRefusal, type Refusal } from '../audit/refusals.ts';
import type { LocalCaller } from './identity/local-caller.ts';
import { type Identity, shownBy } from './identity/authenticate.ts';
import { nothingAt, refuseUnreadable, refuseUnusual } from './connections/refusals.ts';
import type { Caller } from './caller.ts';
import { admit, bodyBytesMax, toApiError } from './exchange.ts';
import { parseJsonBody } from './json-body.ts';
import { addPlacement, type PlacementMount } from '../placement/mount.ts';
import { arrive, type Arrived, limitedAs } from './arrival.ts';
import { type AnsweredRequest, pathOf, singleHeaders } from './request-parts.ts';
import { serveWeb } from '../web/serve-web.ts';
import type { WebFiles } from '../web/web-files.ts';
import { type Challenge, Query, type Route, type RouteRequest } from './route.ts';
import { Over, sendError, sendJson, sendStream, sendTold, signalOf } from './send-answer.ts';
import { upgrade, type UpgradeParts } from './upgrades.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The principal of its credentials; undefined without valid ones. */
    principal: Principal | undefined;
    /** Time of arrival; 0: nothing is measured. */
    startedMs: number;
    /** Why its credentials are not valid. */
    refusal: ApiError | undefined;
  }
}

export interface HttpParts extends UpgradeParts {
  readonly routes: readonly Route[];
  /** Absent: the Placement API is served elsewhere, or not at all. */
  readonly placement?: PlacementMount | undefined;
  /** Whether links of agents and connections to guests are accepted. Default: yes. */
  readonly upgrades?: boolean;
  /** Every server of the fleet, for clients that know this one: the value of `berth-servers`. */
  readonly servers?: () => string | undefined;
  /** The value of `berth-authorities`; undefined: no client pins them. */
  readonly authorities?: () => string | undefined;
  /** How long a request may take to arrive whole. Default: a minute. */
  readonly slowMsMax?: number;
  /** The caller of a request without credentials. Default: unknown. */
  readonly localCaller?: LocalCaller;
  /** The dashboard; absent: it is not served. */
  readonly web?: { readonly files: WebFiles; readonly newNonce: () => string };
  /** Called when an answer was written, for the metrics; not for streams. */
  readonly answered?: (answer: AnsweredRequest) => void;
  /** Of `answered`. */
  readonly monotonicMs?: () => number;
  /** If given, only HTTPS is served. */
  readonly tls?: TlsIdentity;
}

/** PEM texts. */
export interface TlsIdentity {
  readonly cert: string;
  readonly key: string;
  /** Authorities whose hosts may show a certificate; absent: none may. */
  readonly ca?: string;
}

/**
 * Connections that may wait to be accepted: as many as the kernel allows (listen(2); 4096 on Linux). When a server comes back, its whole
 * fleet connects at once, and a connection that the kernel drops is retried after 1, 2, 4 s (RFC 6298).
 */
const backlog = 65_535;

export interface HttpServer {
  /** Where it listens. */
  readonly url: string;
  setTls(identity: TlsIdentity): void;
  close(): Promise<void>;
}

/** Listens on the returned `url`, and serves the routes. */
export async function serveHttp(parts: HttpParts, listen: { host: string; port: number }): Promise<HttpServer> {
  const app = createApp(parts);
  readBodies(app, parts.routes);
  answerFaults(app, parts);
  refuseUnusual(app.server);
  app.decorateRequest('principal');
  app.decorateRequest('refusal');
  app.decorateRequest('startedMs', 0);
  admitRequests(app, parts);
  for (const route of parts.routes) if (!route.takesUnparsedJson) addRoute(app, route, parts);
  addUnparsed(app, parts);
  if (parts.placement) addPlacement(app, parts.placement, parts);
  if (parts.web) serveWeb(app, { ...parts.web, log: parts.log });
  app.server.on('request', (request) => parts.connections.slowRequests.begun(request.socket, request));
  app.server.on('connection', (socket: Socket) => parts.connections.opened(socket));
  if (parts.upgrades ?? true)
    app.server.on('upgrade', (request, socket, head) => upgrade(request, socket, head, parts));
  try {
    const url = await app.listen({ ...listen, backlog });
    return {
      url,
      setTls(identity) {
        if (app.server instanceof TlsServer) app.server.setSecureContext({ ...identity, ...tlsSettings });
      },
      async close() {
        await app.close();
        parts.connections.stop();
      },
    };
  } catch (error) {
    await app.close();
    throw describeListening(error, listen);
  }
}

function createApp({ tls, log, newRequestId, connections, slowMsMax = 60_000 }: HttpParts): FastifyInstance {
  const http = {
    requireHostHeader: false,
    headersTimeout: slowMsMax,
    connectionsCheckingInterval: Math.ceil(slowMsMax / 6),
  };
  return Fastify({
    bodyLimit: bodyBytesMax,
    ...(newRequestId === undefined ? {} : { genReqId: newRequestId }),
    forceCloseConnections: true,
    requestTimeout: slowMsMax,
    return503OnClosing: false,
    clientErrorHandler: (error, socket) => {
      const refuse = (): void => refuseUnreadable(error, socket);
      if ('code' in error && error.code === 'ERR_HTTP_REQUEST_TIMEOUT')
        connections.slowRequests.expired(socket, { slowMsMax, refuse });
      else refuse();
    },
    frameworkErrors: (error, request, reply) => sendError(toApiError(error), request, reply, log),
    // A request without a host is refused in admitRequests, in the form of our errors.
    ...(tls === undefined ? { http } : { https: { ...tls, ...tlsSettings, ...hostCertificates, ...http } }),
  });
}

/** Without tickets no session is resumed: a resumed one would pass with a certificate that is expired or revoked by now. */
const tlsSettings = { minVersion: 'TLSv1.2', secureOptions: constants.SSL_OP_NO_TICKET } as const;

/** Clients without a certificate use the same port; a certificate is checked for each request. */
const hostCertificates = { requestCert: true, rejectUnauthorized: false } as const;

const jsonType = /^application\/json(?:;\s*charset=utf-8)?$/i;

/** JSON, and bytes on the routes that take them. */
function readBodies(app: FastifyInstance, routes: readonly Route[]): void {
  const takingBytes = new Set(routes.filter((route) => route.takesBytes).map(({ path }) => path));
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(jsonType, { parseAs: 'string' }, (request, body, done) => {
    if (request.headers['content-encoding'] !== undefined)
      return done(new ApiError('UnsupportedMediaType', 'compressed bodies are not taken'));
    try {
      done(null, parseJsonBody(String(body)));
    } catch (error) {
      done(toApiError(error));
    }
  });
  app.addContentTypeParser('application/octet-stream', (request, payload, done) => {
    if (takingBytes.has(request.routeOptions.url ?? '')) done(null, payload);
    else
      done(
        new ApiError('UnsupportedMediaType', 'the body must be JSON, with the header "content-type: application/json"'),
      );
  });
}

/** A context of its own, where JSON is not parsed. */
function addUnparsed(app: FastifyInstance, parts: HttpParts): void {
  app.register((child, _options, done) => {
    child.removeAllContentTypeParsers();
    child.addContentTypeParser(jsonType, (request, payload, taken) => {
      if (request.headers['content-encoding'] === undefined) taken(null, payload);
      else taken(new ApiError('UnsupportedMediaType', 'compressed bodies are not taken'));
    });
    for (const route of parts.routes) if (route.takesUnparsedJson) addRoute(child, route, parts);
    done();
  });
}

function answerFaults(app: FastifyInstance, { routes, log, onRefused, answered, monotonicMs }: HttpParts): void {
  const challenges = new Map(routes.map(({ path, challenge }) => [path, challenge]));
  app.setErrorHandler((error, request, reply) => {
    const refusal = toApiError(error, request.routeOptions.bodyLimit);
    if (onRefused && isRefusal(refusal)) onRefused(refusalOf(refusal, request));
    const route = request.routeOptions.url ?? 'none';
    answered?.({
      method: request.method,
      route,
      status: refusal.status,
      tookMs: (monotonicMs?.() ?? 0) - request.startedMs,
    });
    const challenge = refusal.status === 401 && challenges.get(request.routeOptions.url ?? '');
    if (challenge) reply.header('www-authenticate', challengeText(challenge, request.refusal !== undefined));
    return sendError(refusal, request, reply, log);
  });
  app.setNotFoundHandler((request, reply) => {
    const { error, allow: methods } = nothingAt(routes, request.method, pathOf(request.url));
    if (methods !== undefined) reply.header('allow', methods);
    sendError(error, request, reply, log);
  });
}

/** After RFC 6750 and RFC 9728. */
function challengeText({ resourceMetadata }: Challenge, hasToken: boolean): string {
  const words = [
    ...(hasToken ? ['error="invalid_token"'] : []),
    ...(resourceMetadata === undefined ? [] : [`resource_metadata="${resourceMetadata}"`]),
  ];
  return ['Bearer', words.join(', ')].join(' ').trim();
}

function refusalOf(error: ApiError, request: FastifyRequest): Refusal {
  const { principal, id, ip, method, url, headers } = request;
  const traceParent = traceParentIn(headers['traceparent']);
  return { error, principal, requestId: id, traceParent, address: ip, method, path: pathOf(url) };
}

/** Identifies the sender, and queues the request behind earlier ones on its connection. */
function admitRequests(app: FastifyInstance, parts: HttpParts): void {
  const { connections, limits, identify, routes, localCaller } = parts;
  const placementOnly = parts.placement?.at === '';
  const brief = new Set(routes.filter((route) => route.answersBriefly).map(({ method, path }) => method + path));
  const answersBriefly = ({ url, method, routeOptions }: FastifyRequest): boolean =>
    brief.has(method + routeOptions.url) && !url.includes('dryRun');
  const receive = (request: FastifyRequest, reply: FastifyReply, done: (fault?: ApiError) => void): void => {
    const { socket } = request.raw;
    request.startedMs = parts.monotonicMs?.() ?? 0;
    const settle = (identity: Identity): Arrived => {
      if (identity instanceof ApiError) request.refusal = identity;
      else request.principal = identity ?? localCaller?.(request.raw);
      if (!request.principal) connections.busy(socket, (ended) => reply.raw.once('close', ended));
      return arrive(request.raw, request.principal, { limits, connections });
    };
    const identity = identify(shownBy(request.raw, placementOnly || undefined));
    const arrived =
      identity instanceof Promise
        ? identity.then(settle, (error: unknown) => {
            request.refusal = toApiError(error); // routes that are open to everyone are answered nevertheless
            return { fault: undefined, delayMs: 0 };
          })
        : settle(identity);
    const begin = ({ fault, delayMs }: Arrived): void =>
      delayMs > 0 ? limits.delay(request.raw, delayMs, () => done(fault)) : done(fault);
    connections.pipelines.enter(
      socket,
      reply.raw,
      () => answersBriefly(request),
      () => (arrived instanceof Promise ? void arrived.then(begin) : begin(arrived)),
    );
  };
  app.addHook('onRequest', (request, reply, done) =>
    connections.turns.enter(
      request.raw.socket,
      () => senderOf(request, connections),
      () => receive(request, reply, done),
    ),
  );
}

/**
 * With whom a request shares its turns: on a connection that has shown a valid token, all with the same credentials; on any other, all from the
 * same address, whatever it shows. A certificate belongs to its connection.
 */
function senderOf({ raw: { socket, headers } }: FastifyRequest, connections: HttpParts['connections']): unknown {
  if (!connections.isTrusted(socket)) return socket.remoteAddress;
  return headers.authorization ?? socket;
}

/** Throws `InvalidRequest` when this address cannot be listened on now. For callers that do much before they listen. */
export async function checkListen(
  listen: { readonly host: string; readonly port: number },
  field = 'listen',
): Promise<void> {
  const probe = createServer().listen(listen);
  try {
    await once(probe, 'listening');
  } catch (error) {
    throw describeListening(error, listen, field);
  } finally {
    probe.close();
  }
}

/** The usual causes, with what the user can do. */
function describeListening(
  error: unknown,
  { host, port }: { readonly host: string; readonly port: number },
  field = 'listen',
): unknown {
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
  const instead = field === 'listen' ? ' with --listen' : '';
  const message = `${field}: cannot listen on ${host}:${port}: ${why}, or set another address${instead}`;
  return new ApiError('InvalidRequest', message, { field, cause: error });
}

function addRoute(app: FastifyInstance, route: Route, parts: HttpParts): void {
  const { snapshot } = parts;
  const hasParams = route.path.includes(':');
  app.route({
    method: route.method,
    url: route.path,
    ...(route.bodyBytesMax === undefined ? {} : { bodyLimit: route.bodyBytesMax }),
    // Before the body is read: a body without permission is not read.
    onRequest(request, _reply, done) {
      try {
        admit(route, request.principal, { host: hasParams ? paramsOf(request)['host'] : undefined, snapshot });
        done();
      } catch (error) {
        done(withRefusal(toApiError(error), request));
      }
    },
    async handler(request, reply) {
      const params = hasParams ? paramsOf(request) : noParams;
      const principal = admit(route, request.principal, { host: params['host'], snapshot });
      const servers = route.access === 'open' ? undefined : parts.servers?.();
      if (servers !== undefined) reply.raw.setHeader(serversHeader, servers);
      const authorities = route.access === 'open' ? undefined : parts.authorities?.();
      if (authorities !== undefined) reply.raw.setHeader(authoritiesHeader, authorities);
      holdOpen(route, { request, reply, principal }, parts);
      const since = accessVersion(snapshot);
      const answer = await route.handle(new ServedRequest(request, reply, { params, principal }));
      if ('json' in answer) {
        sendJson(answer, request, reply, parts.connections);
        parts.answered?.({
          ...{ method: route.method, route: route.path, status: answer.status },
          tookMs: (parts.monotonicMs?.() ?? 0) - request.startedMs,
        });
        return reply;
      }
      const over = new Over(reply);
      const leave = parts.live?.enter({ principal, question: answer.question, since, end: (why) => over.end(why) });
      if (leave) reply.raw.once('close', leave);
      if ('lines' in answer && answer.texts)
        await sendTold(answer.status, answer.texts, reply, { over, log: parts.log });
      else await sendStream(answer, request, reply, { over, log: parts.log });
      return reply;
    },
  });
}

/** Counts a streamed answer until it ends. Throws `TooManyRequests`. */
function holdOpen({ holds }: Route, { request, reply, principal }: Served, { limits, connections }: HttpParts): void {
  if (holds === undefined || (holds === 'watchesIfAsked' && !request.url.includes('watch='))) return;
  const kind = holds === 'streams' ? holds : 'watches';
  reply.raw.once('close', limits.hold(kind, limitedAs(principal)));
  reply.raw.once('close', connections.slow.watch(request.raw.socket));
}

interface Served {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly principal: Principal;
}

/** Says why a token is not valid, where a token is needed. */
function withRefusal(error: ApiError, { refusal }: FastifyRequest): ApiError {
  return error.code === 'Unauthenticated' && refusal !== undefined ? refusal : error;
}

const noParams: Readonly<Record<string, string>> = {};

/** Fields that few routes use are computed on demand. */
class ServedRequest implements RouteRequest {
  readonly params: Readonly<Record<string, string>>;
  readonly query: Query;
  readonly body: unknown;
  readonly caller: Caller;
  readonly #request: FastifyRequest;
  readonly #reply: FastifyReply;
  #headers: Readonly<Record<string, string | undefined>> | undefined;

  constructor(
    request: FastifyRequest,
    reply: FastifyReply,
    { params, principal }: { params: Readonly<Record<string, string>>; principal: Principal },
  ) {
    const { url, body } = request;
    const question = url.indexOf('?');
    this.params = params;
    this.query = question < 0 ? noQuery : new Query(new URLSearchParams(url.slice(question + 1)));
    this.body = body ?? {};
    const { id: requestId, ip: address, headers } = request;
    const traceParent = traceParentIn(headers['traceparent']);
    const from = reply.raw.socket === null ? request.raw.socket : undefined;
    this.caller = { principal, requestId, address, face: 'http', traceParent, from, trail: undefined };
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

function paramsOf(request: FastifyRequest): Record<string, string> {
  const { params } = request;
  return typeof params === 'object' && params !== null
    ? Object.fromEntries(Object.entries(params).map(([name, value]) => [name, String(value)]))
    : {};
}
