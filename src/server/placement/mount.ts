// The Placement API on Fastify, below a path or as all that a listener serves. Bodies stay unread here: that API answers for them
// in its own form.

import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { anonymous } from '../../core/access/principal.ts';
import type { Snapshot } from '../../core/state/snapshot.ts';
import type { PlacementApp } from './app.ts';
import { callerOf, noAuthCaller } from './callers.ts';
import type { PlacementCaller } from './exchange.ts';
import { pathOf, singleHeaders } from '../http/request-parts.ts';

export interface PlacementMount {
  readonly app: PlacementApp;
  /** `/placement`; '': everything. */
  readonly at: string;
  /** X-Auth-Token names a user, and that is believed: for development only. */
  readonly noAuth?: boolean;
}

interface Parts {
  readonly snapshot: Snapshot;
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
    caller: callerIn(request, { mount, parts }),
    as: { principal: request.principal ?? anonymous, requestId: request.id, address: request.ip, face: 'placement' },
    mount: mount.at,
    origin: `${request.protocol}://${request.headers.host ?? 'localhost'}`,
    requestId,
  });
  return reply
    .code(status)
    .headers({ ...headers, 'x-openstack-request-id': requestId })
    .send(text === '' ? undefined : Buffer.from(text));
}

function callerIn(
  request: FastifyRequest,
  { mount, parts }: { readonly mount: PlacementMount; readonly parts: Parts },
): PlacementCaller | undefined {
  const token = request.headers['x-auth-token'];
  if (mount.noAuth) return typeof token === 'string' ? noAuthCaller(token) : undefined;
  return request.principal && callerOf(request.principal, parts.snapshot);
}
