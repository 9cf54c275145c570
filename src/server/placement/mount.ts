// The Placement API on Fastify, below a path or as all that a listener serves. Bodies stay unread here: that API answers for them
// in its own form.

import { isUtf8 } from 'node:buffer';
import { hash } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { ApiError } from '../../api/errors.ts';
import { traceParentIn } from '../../base/tracing/trace-parent.ts';
import { anonymous } from '../../core/access/principal.ts';
import type { Snapshot } from '../../core/state/snapshot.ts';
import type { PlacementApp } from './app.ts';
import { callerOf, noAuthCaller } from './callers.ts';
import type { PlacementAnswer, PlacementCaller } from './exchange.ts';
import type { Refusal } from '../audit/refusals.ts';
import type { Connections } from '../http/connections/connections.ts';
import { type AnsweredRequest, pathOf, singleHeaders } from '../http/request-parts.ts';
import { normalUuid } from './wire/json-schema.ts';

export interface PlacementMount {
  readonly app: PlacementApp;
  /** `/placement`; '': everything. */
  readonly at: string;
  /** X-Auth-Token names a user, and that is believed: for development only. */
  readonly noAuth?: boolean;
}

/** What the listener shares with the routes of our own API. */
interface Parts {
  readonly snapshot: Snapshot;
  readonly connections: Connections;
  readonly onRefused?: (refusal: Refusal) => void;
  readonly answered?: (answer: AnsweredRequest) => void;
  readonly monotonicMs?: () => number;
}

export function addPlacement(app: FastifyInstance, mount: PlacementMount, parts: Parts): void {
  app.register((child, _options, done) => {
    child.removeAllContentTypeParsers();
    // An empty type is none; Fastify would refuse it in a form that is not of this API.
    child.addHook('onRequest', (request, _reply, next) => {
      if (request.headers['content-type'] === '') delete request.headers['content-type'];
      next();
    });
    child.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, parsed) => parsed(null, body));
    for (const url of mount.at === '' ? ['/', '/*'] : [mount.at, `${mount.at}/*`])
      child.route({
        method: ['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'HEAD', 'OPTIONS'],
        url,
        handler: (request, reply) => answer(request, reply, { mount, parts }),
      });
    done();
  });
}

async function answer(
  request: FastifyRequest,
  reply: FastifyReply,
  { mount, parts }: { readonly mount: PlacementMount; readonly parts: Parts },
): Promise<FastifyReply> {
  const { url, method, body } = request;
  const question = url.indexOf('?');
  const requestId = placementId(request.id);
  const made = await mount.app.handle({
    method,
    path: pathOf(url).slice(mount.at.length),
    query: new URLSearchParams(question < 0 ? '' : url.slice(question + 1)),
    headers: singleHeaders(request.raw),
    body: textOf(body),
    caller: callerIn(request, { mount, parts }),
    as: {
      ...{ principal: request.principal ?? anonymous, requestId, address: request.ip, face: 'placement' },
      traceParent: traceParentIn(request.headers['traceparent']),
    },
    mount: mount.at,
    origin: `${request.protocol}://${request.headers.host ?? 'localhost'}`,
    requestId,
  });
  send(made, { request, reply, requestId }, parts);
  tell(made, request, { mount, parts });
  return reply;
}

/** In the form of OpenStack's ids, which clients search for in logs: `req-` and a UUID. Answers and the audit log have the same. */
function placementId(id: string): string {
  return `req-${normalUuid(hash('sha256', id, 'hex').slice(0, 32))}`;
}

/** Undefined: it is not UTF-8. Decoded nevertheless, every broken name would be the same. */
function textOf(body: unknown): string | undefined {
  if (!Buffer.isBuffer(body)) return '';
  return isUtf8(body) ? body.toString() : undefined;
}

interface Served {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly requestId: string;
}

/** Bypasses the library, as answers of our own API do: its own sending costs as much as the rest of its work on a request. */
function send({ status, headers, body }: PlacementAnswer, { request, reply, requestId }: Served, parts: Parts): void {
  const { raw } = reply;
  const bytes = Buffer.byteLength(body);
  reply.hijack();
  raw.writeHead(status, {
    ...headers,
    'x-openstack-request-id': requestId,
    ...(status === 204 ? {} : { 'content-length': bytes }),
  });
  raw.end(body);
  parts.connections.unread.sent(request.raw.socket, raw, bytes);
}

/** For the metrics, and for the audit log's refusals. */
function tell(
  { status, route = 'none' }: PlacementAnswer,
  request: FastifyRequest,
  { mount, parts }: { readonly mount: PlacementMount; readonly parts: Parts },
): void {
  const { method, ip: address, principal, url } = request;
  const requestId = placementId(request.id);
  parts.answered?.({
    ...{ method, route: route === 'none' ? route : mount.at + route, status },
    tookMs: (parts.monotonicMs?.() ?? 0) - request.startedMs,
  });
  if (status !== 401 && status !== 403) return;
  const error =
    status === 401
      ? (request.refusal ?? new ApiError('Unauthenticated', 'no credentials'))
      : new ApiError('Forbidden', 'the token does not permit this');
  const traceParent = traceParentIn(request.headers['traceparent']);
  parts.onRefused?.({
    error,
    principal,
    requestId,
    traceParent,
    address,
    method,
    path: pathOf(url),
    face: 'placement',
  });
}

function callerIn(
  request: FastifyRequest,
  { mount, parts }: { readonly mount: PlacementMount; readonly parts: Parts },
): PlacementCaller | undefined {
  if (mount.noAuth) {
    const { 'x-auth-token': token, 'x-roles': roles, 'x-project-id': project } = singleHeaders(request.raw);
    return token === undefined ? undefined : noAuthCaller({ token, roles, project });
  }
  return request.principal && callerOf(request.principal, parts.snapshot);
}
