// Upgraded connections: an agent's link, and a client's connection to a guest.

import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { ApiError } from '../../api/errors.ts';
import type { Carried } from '../../base/carried.ts';
import { describeError, type Logger } from '../../base/log.ts';
import { type Identity, may } from '../../core/access/access.ts';
import type { Connections } from './connections/connections.ts';
import { refuseConnection } from './connections/refusals.ts';
import { toApiError } from './exchange.ts';
import type { GuestAccess } from './guest-access.ts';
import { pathOf, singleHeaders } from './request-parts.ts';

export interface UpgradeParts {
  identify(authorization: string | undefined): Identity | undefined;
  /** The current session of a host. */
  epochOf(host: string): number | undefined;
  /** Takes over a connection that the agent of `host` opened in this session. */
  acceptLink(host: string, socket: Duplex, epoch: number): void;
  readonly access: GuestAccess;
  readonly connections: Connections;
  /** Called with the number of bytes that pass to and from guests. */
  readonly carried?: Carried;
  readonly log: Logger;
}

const linkPath = /^\/v1\/hosts\/([a-z0-9-]{1,63})\/link\?epoch=(\d{1,15})$/;

export function upgrade(request: IncomingMessage, socket: Duplex, head: Buffer, parts: UpgradeParts): void {
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

function upgradeLink(request: IncomingMessage, socket: Duplex, parts: UpgradeParts): void {
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
