// The Placement API on Fastify, below a path or as all that a listener serves. Bodies stay unread here: that API answers for them
// in its own form.

import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { ApiError } from '../../api/errors.ts';
import type { Principal } from '../../core/access/principal.ts';
import type { Snapshot } from '../../core/state/snapshot.ts';
import type { PlacementApp } from './app.ts';
import { callerOf, noAuthCaller } from './callers.ts';
import type { PlacementCaller } from './exchange.ts';
import { type Identity, type Shown, shownBy } from '../http/identity/authenticate.ts';
import { pathOf, singleHeaders } from '../http/request-parts.ts';

export interface PlacementMount {
  readonly app: PlacementApp;
  /** `/placement`; '': everything. */
  readonly at: string;
  /** Whoever names a user in X-Auth-Token is that user: for development only. */
  readonly noAuth?: boolean;
}

interface Parts {
  readonly snapshot: Snapshot;
  identify(shown: Shown): Identity | Promise<Identity>;
}

export function addPlacement(app: FastifyInstance, mount: PlacementMount, parts: Parts): void {
  app.register((child, _options, done) => {
    child.removeAllContentTypeParsers();
    child.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, parsed) => parsed(null, String(body)));
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
  const requestId = `req-${request.id}`;
  const {
    status,
    headers,
    body: text,
  } = await mount.app.handle({
    method,
    path: pathOf(url).slice(mount.at.length),
    query: new URLSearchParams(question < 0 ? '' : url.slice(question + 1)),
    headers: singleHeaders(request.raw),
    body: typeof body === 'string' ? body : '',
    caller: await callerIn(request, { mount, parts }),
    mount: mount.at,
    origin: `${request.protocol}://${request.headers.host ?? 'localhost'}`,
    requestId,
  });
  return reply
    .code(status)
    .headers({ ...headers, 'x-openstack-request-id': requestId })
    .send(text === '' ? undefined : Buffer.from(text));
}

async function callerIn(
  request: FastifyRequest,
  { mount, parts }: { readonly mount: PlacementMount; readonly parts: Parts },
): Promise<PlacementCaller | undefined> {
  const token = request.headers['x-auth-token'];
  if (mount.noAuth) return typeof token === 'string' ? noAuthCaller(token) : undefined;
  const principal: Principal | undefined =
    typeof token === 'string' ? await byToken(request, token, parts) : request.principal;
  return principal && callerOf(principal, parts.snapshot);
}

/** Of a client of OpenStack, which has a header of its own for what we call a bearer token. */
async function byToken(request: FastifyRequest, token: string, parts: Parts): Promise<Principal | undefined> {
  const identity = await parts.identify({ ...shownBy(request.raw), authorizations: [`Bearer ${token}`] });
  return identity instanceof ApiError ? undefined : identity;
}
