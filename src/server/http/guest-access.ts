// Guest access: identifies the caller, finds the host of the guest, and has its agent open the connection. From then on bytes pass through
// unread in both directions.

import type { Duplex } from 'node:stream';
import { accessSubprotocol } from '../../api/access-protocol.ts';
import { ApiError } from '../../api/errors.ts';
import type { Instance } from '../../api/resources/instance.ts';
import { instanceRoutes, waysIn } from '../../api/routes/instances.ts';
import { newId } from '../../base/ids.ts';
import { assertMayOn } from '../../core/access/may.ts';
import { anonymous, type Principal } from '../../core/access/principal.ts';
import { about } from '../../core/access/question.ts';
import { type AccessTicket, useTicket } from '../../core/operations/access-ticket.ts';
import { type Decider, decideAndCommit } from '../decide.ts';
import { auditedRoutes, verbOfWay } from '../audit/audited-routes.ts';
import { type AuditParts, type AuditSubject, openTrail } from '../audit/trail.ts';
import type { Caller } from './caller.ts';
import type { HostLinks } from './agent-link/host-links.ts';
import { bind } from './routes/bind.ts';
import { findOne } from './routes/find-resource.ts';
import { keys } from '../../core/state/keys.ts';
import { type LiveSession, type LiveSessions, whyNotStanding } from './identity/live-sessions.ts';
import { Query, type Route } from './route.ts';
import { openTicket, sealTicket } from './tickets.ts';

export interface AccessRequest {
  /** Path and query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** The principal of its credentials, if it has any. */
  readonly principal: Principal | undefined;
  readonly requestId: string;
  readonly address: string;
  /** Why its credentials are not valid. */
  readonly refusal?: ApiError;
  readonly signal: AbortSignal;
}

export interface GuestAccess {
  /** Whether the path leads into a guest. */
  knows(path: string): boolean;
  /** The connection on which the host answers the client's handshake. Throws `ApiError`. */
  open(request: AccessRequest): Promise<Duplex>;
  readonly routes: readonly Route[];
}

const pathPattern = /^\/v1\/instances\/([a-z0-9_-]{1,63})\/(console|exec|vnc|ports\/\d{1,5})(?:\?|$)/;
const ticketPrefix = 'berth.ticket.';
/** Long enough for a page to load; too short to be valid when it is found in a log or a history. */
const ticketLifeMs = 60_000;

export function guestAccess(parts: {
  readonly decider: Decider;
  readonly links: HostLinks;
  readonly secret: Uint8Array;
  /** Ends connections when rights change; absent: nothing is ended. */
  readonly live?: LiveSessions;
  /** The audit log, which records each access before it opens. */
  readonly audit?: AuditParts | undefined;
}): GuestAccess {
  const { decider, links, secret, live, audit } = parts;

  /** Throws `Unauthenticated` when the token that the ticket was made with is no longer valid. */
  const standing = (ticket: AccessTicket): AccessTicket => {
    const { cache, clock } = decider;
    const fault = whyNotStanding(ticket.by, { cache, nowMs: clock.nowMs() });
    if (fault !== undefined) throw fault;
    const { operatorRotatedAtMs = 0 } = cache.committed('cluster', keys.cluster)?.value ?? {};
    if (ticket.by.kind === 'admin' && ticket.expiresAtMs - ticketLifeMs < operatorRotatedAtMs)
      throw new ApiError('Unauthenticated', 'the admin token that made this ticket was replaced');
    return ticket;
  };
  /** The caller's ticket; undefined: a token is enough. Checked before any lookup, so that others learn nothing about what exists. */
  const ticketOf = (request: AccessRequest): AccessTicket | undefined => {
    const sealed = protocolsOf(request).find((protocol) => protocol.startsWith(ticketPrefix));
    if (sealed !== undefined) return standing(openTicket(secret, sealed.slice(ticketPrefix.length)));
    // A browser sends its cookies for any page that makes it connect: only a ticket shows that the user meant it.
    if (request.headers['origin'] !== undefined)
      throw new ApiError('Forbidden', 'a browser needs a ticket: POST /v1/instances/{name}/tickets');
    if (request.principal === undefined)
      throw request.refusal ?? new ApiError('Unauthenticated', 'a valid token is needed');
    return undefined;
  };
  const use = async (ticket: AccessTicket, { metadata, status }: Instance, way: string): Promise<void> => {
    if (ticket.instanceId !== metadata.id || ticket.way !== way || ticket.incarnation !== status.incarnation)
      throw new ApiError('Forbidden', 'this ticket is for something else');
    await decideAndCommit(decider, (snapshot, ctx) => useTicket(snapshot, ticket, ctx));
  };
  return {
    knows: (path) => pathPattern.test(path),
    async open(request) {
      const { pathname, searchParams } = new URL(request.path, 'http://server');
      const [, name = '', way = ''] = pathPattern.exec(request.path) ?? [];
      if (!protocolsOf(request).includes(accessSubprotocol))
        throw new ApiError('InvalidRequest', `the WebSocket must offer the subprotocol ${accessSubprotocol}`);
      const ticket = ticketOf(request);
      const query = new Query(searchParams).only(...queryNames(way));
      const caller = { principal: ticket?.by ?? request.principal ?? anonymous };
      const { value: instance } = findOne('instance', decider.cache, { caller, name, project: query.text('project') });
      assertMayOn(decider.cache, caller.principal, verbOfWay(way), instance);
      if (ticket !== undefined) await use(ticket, instance, way);
      const { host, incarnation } = instance.status;
      if (host === undefined) {
        throw new ApiError(
          'Conflict',
          `instance "${name}" has no guest yet: it is not placed on a host; "berth explain ${name}" says why`,
        );
      }
      searchParams.delete('project');
      searchParams.set('incarnation', String(incarnation));
      const asked = `/guests/${instance.metadata.id}/${pathname.split('/').slice(4).join('/')}?${searchParams.toString()}`;
      const handshake = handshakeOf(request);
      const { id: objectId, project } = instance.metadata;
      const verb = verbOfWay(way);
      const subject = { verb, kind: 'instance', project, object: instance.metadata.name, objectId };
      const session = { principal: caller.principal, question: about(verb, instance) };
      return openLive(live, session, () =>
        loggedFirst(audit, { ...request, ...caller }, subject, () =>
          links.open(host, asked, handshake, request.signal),
        ),
      );
    },
    routes: auditedRoutes(
      [
        bind(instanceRoutes.ticket, ({ params, query, body: { way } }, { caller }) => {
          const { value } = findOne('instance', decider.cache, { caller, name: params.name, project: query.project });
          const { principal: by } = caller;
          assertMayOn(decider.cache, by, verbOfWay(way), value);
          const expiresAtMs = Math.floor(decider.clock.nowMs()) + ticketLifeMs;
          const nonce = newId('tick', expiresAtMs, decider.prng);
          const { id: instanceId } = value.metadata;
          const { incarnation } = value.status;
          const ticket = sealTicket(secret, { nonce, instanceId, incarnation, way, expiresAtMs, by });
          return { status: 201, json: { ticket, protocols: [accessSubprotocol, ticketPrefix + ticket], expiresAtMs } };
        }),
      ],
      audit,
    ),
  };
}

/** Calls `open` once the audit log has the attempt on the disk. */
async function loggedFirst(
  audit: AuditParts | undefined,
  { principal, requestId, address }: Pick<Caller, 'principal' | 'requestId' | 'address'>,
  subject: AuditSubject,
  open: () => Promise<Duplex>,
): Promise<Duplex> {
  if (audit === undefined) return open();
  const trail = openTrail(audit, { principal, requestId, address, face: 'http' }, subject);
  await trail.begins();
  try {
    return await open();
  } catch (error) {
    await trail.failed(error);
    throw error;
  }
}

/** Closes a connection when it would no longer be allowed, also while it is being opened. */
async function openLive(
  live: LiveSessions | undefined,
  session: Omit<LiveSession, 'end'>,
  open: () => Promise<Duplex>,
): Promise<Duplex> {
  let guest: Duplex | undefined;
  let why: ApiError | undefined;
  const leave = live?.enter({
    ...session,
    end(error) {
      why = error;
      guest?.destroy();
    },
  });
  try {
    guest = await open();
    if (why !== undefined) throw why;
    if (leave) guest.once('close', leave);
    return guest;
  } catch (error) {
    leave?.();
    guest?.destroy();
    throw error;
  }
}

/** The parameters that the query for `console`, `ports/80`, ... may have. The host reads the values. */
function queryNames(way: string): string[] {
  const kind = way.split('/', 1)[0];
  const [, route] = Object.entries(waysIn).find(([name]) => name === kind) ?? [];
  return Object.keys(route?.query ?? {});
}

function protocolsOf({ headers }: AccessRequest): string[] {
  return (headers['sec-websocket-protocol'] ?? '').split(',').map((protocol) => protocol.trim());
}

/** What the host needs to answer the client itself. A ticket stays here. */
function handshakeOf({ headers }: AccessRequest): Record<string, string> {
  const key = headers['sec-websocket-key'];
  const version = headers['sec-websocket-version'];
  if (key === undefined || version === undefined)
    throw new ApiError(
      'InvalidRequest',
      'this is a WebSocket: sec-websocket-key and sec-websocket-version are missing',
    );
  return {
    'sec-websocket-key': key,
    'sec-websocket-version': version,
    'sec-websocket-protocol': accessSubprotocol,
  };
}
