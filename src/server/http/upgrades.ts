// Upgraded connections: an agent's link, and a client's connection to a guest.

import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { ApiError } from '../../api/errors.ts';
import type { Carried } from '../../base/carried.ts';
import { describeError, type Logger } from '../../base/log.ts';
import { agentRoutes } from '../../api/routes/agent.ts';
import type { Principal } from '../../core/access/principal.ts';
import type { Snapshot } from '../../core/state/snapshot.ts';
import type { RequestLimits } from '../limits/request-limits.ts';
import { isRefusal, type Refusal } from '../audit/refusals.ts';
import type { Connections } from './connections/connections.ts';
import { type Identity, type Shown, shownBy } from './identity/authenticate.ts';
import { refuseConnection } from './connections/refusals.ts';
import { admit, toApiError } from './exchange.ts';
import type { GuestAccess } from './guest-access.ts';
import { arrive, limitedAs } from './arrival.ts';
import type { LiveSessions } from './identity/live-sessions.ts';
import { pathOf, singleHeaders } from './request-parts.ts';

export interface UpgradeParts {
  /** A promise rejects with `Unavailable`. */
  identify(shown: Shown): Identity | Promise<Identity>;
  /** Ends connections when rights change; absent: nothing is ended. */
  readonly live?: LiveSessions;
  /** The state by which rights are decided. */
  readonly snapshot: Snapshot;
  /** The current session of a host. */
  epochOf(host: string): number | undefined;
  /** Takes over a connection that the agent of `host` opened in this session. */
  acceptLink(host: string, socket: Duplex, epoch: number): void;
  readonly access: GuestAccess;
  /** Called for refusals for want of rights, and for failed logins. */
  readonly onRefused?: (refusal: Refusal) => void;
  /** Default: unique within this process only. */
  readonly newRequestId?: () => string;
  readonly connections: Connections;
  readonly limits: RequestLimits;
  /** Called with the number of bytes that pass to and from guests. */
  readonly carried?: Carried;
  readonly log: Logger;
}

/** Agents ping each client every half minute; those of earlier versions do not. */
const idleMsMax = 600_000;

const linkPath = /^\/v1\/hosts\/([a-z0-9-]{1,63})\/link\?epoch=(\d{1,15})$/;

export function upgrade(request: IncomingMessage, socket: Duplex, head: Buffer, parts: UpgradeParts): void {
  const { identify, access, connections, limits, log, carried = () => {} } = parts;
  socket.on('error', (error) => log.debug('an upgraded connection broke', { error: describeError(error) }));
  const { url = '', headers } = request;
  if (!access.knows(url) || headers.upgrade?.toLowerCase() !== 'websocket')
    return void upgradeLink(request, socket, parts);
  const gone = new AbortController();
  socket.once('close', () => gone.abort());
  const from = { requestId: parts.newRequestId?.() ?? '', address: request.socket.remoteAddress ?? '' };
  let principal: Principal | undefined;
  const open = async (): Promise<Duplex> => {
    const identity = await identify(shownBy(request));
    if (!(identity instanceof ApiError)) principal = identity;
    const { fault } = arrive(request, principal, parts);
    if (fault) throw fault;
    if (socket.destroyed) throw new ApiError('RequestTimeout', 'the connection is closed');
    socket.once('close', limits.hold('streams', principal === undefined ? 'unlimited' : limitedAs(principal)));
    const refusal = identity instanceof ApiError ? { refusal: identity } : {};
    const what = { path: url, headers: singleHeaders(request), signal: gone.signal };
    return access.open({ ...from, ...what, principal, ...refusal });
  };
  open()
    .then((guest) => {
      connections.authenticate(request.socket); // with a ticket, if not with a token
      guest.on('error', () => socket.destroy());
      guest.on('close', () => socket.end());
      socket.on('close', () => guest.destroy());
      if (socket.destroyed) return void guest.destroy();
      connections.slow.watch(request.socket, { idleMsMax });
      if (head.length > 0) socket.unshift(head);
      const count = (piece: Uint8Array): void => carried(piece.length);
      socket.on('data', count).pipe(guest).on('data', count).pipe(socket);
    })
    .catch((error: unknown) => {
      const refusal = toApiError(error);
      if (refusal.code === 'Internal') log.error('no way into a guest', { error: describeError(refusal.cause) });
      tellRefusal(refusal, request, { ...from, principal }, parts);
      refuseConnection(socket, refusal);
    });
}

function tellRefusal(
  error: ApiError,
  { url = '' }: IncomingMessage,
  from: Pick<Refusal, 'principal' | 'requestId' | 'address'>,
  { onRefused }: UpgradeParts,
): void {
  if (isRefusal(error)) onRefused?.({ ...from, error, method: 'UPGRADE', path: pathOf(url) });
}

async function upgradeLink(request: IncomingMessage, socket: Duplex, parts: UpgradeParts): Promise<void> {
  const { identify, snapshot, epochOf, acceptLink } = parts;
  const [, host, epoch] = linkPath.exec(request.url ?? '') ?? [];
  if (host === undefined || request.headers.upgrade !== 'berth-agent/1')
    return refuseConnection(socket, new ApiError('NotFound', `there is nothing at ${pathOf(request.url ?? '')}`));
  let principal: Principal | undefined;
  try {
    const identity = await identify(shownBy(request));
    if (!(identity instanceof ApiError)) principal = identity;
    const { fault } = arrive(request, principal, parts);
    if (fault) throw fault;
    if (identity instanceof ApiError) throw identity;
    admit(agentRoutes.link, principal, { host, snapshot });
  } catch (error) {
    const refusal = toApiError(error);
    const from = { principal, requestId: parts.newRequestId?.() ?? '', address: request.socket.remoteAddress ?? '' };
    tellRefusal(refusal, request, from, parts);
    return refuseConnection(socket, refusal);
  }
  // An agent whose session is over must not take the link of the next session.
  if (epochOf(host) !== Number(epoch))
    return refuseConnection(socket, new ApiError('StaleEpoch', 'the host has registered again since'));
  // Passed on only after it is written: HTTP/2 takes the socket's handle, and Node aborts when a pending write to a TLS socket loses it.
  const agreed = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: berth-agent/1\r\n\r\n';
  socket.write(agreed, () => acceptLink(host, socket, Number(epoch)));
}
