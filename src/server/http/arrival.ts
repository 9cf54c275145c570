// Checks of every request before its route is found: the headers are unambiguous, and the sender is within its limits. The body has not been
// read yet.

import type { IncomingMessage } from 'node:http';
import { ApiError } from '../../api/errors.ts';
import type { Principal } from '../../core/access/principal.ts';
import type { Limited, RequestLimits } from '../limits/request-limits.ts';
import { openStackToken } from './identity/authenticate.ts';
import type { Connections } from './connections/connections.ts';

interface ArrivalParts {
  readonly limits: RequestLimits;
  readonly connections: Connections;
}

/** The refusal, and the delay before it is sent. */
export interface Arrived {
  readonly fault: ApiError | undefined;
  readonly delayMs: number;
}

export function arrive(
  request: IncomingMessage,
  principal: Principal | undefined,
  { limits, connections }: ArrivalParts,
): Arrived {
  const { socket, headers } = request;
  const from = principal === undefined ? 'unknown' : limitedAs(principal);
  const admission = limits.admit({
    remoteAddress: socket.remoteAddress,
    from,
    withToken: headers.authorization !== undefined || openStackToken(request) !== undefined,
  });
  if (!admission.admitted) return { fault: admission.error, delayMs: 0 };
  const fault =
    wrongHeaders(request) ??
    (principal === undefined ? tokenInQuery(request.url ?? '') : undefined) ??
    (from === 'unknown' ? undefined : holdConnection(socket, from, { limits, connections }));
  return { fault, delayMs: 'delayMs' in admission ? admission.delayMs : 0 };
}

/** The key under which the requests of `principal` are counted. */
export function limitedAs(principal: Principal): Limited | 'unlimited' {
  switch (principal.kind) {
    case 'token':
      return { kind: 'token', id: principal.tokenId };
    case 'host':
      return { kind: 'host', id: principal.host };
    case 'admin':
    case 'intake':
    case 'anonymous':
      return 'unlimited';
  }
}

/** After the first request with a token, the connection counts as its principal's. */
function holdConnection(
  socket: IncomingMessage['socket'],
  from: Limited | 'unlimited',
  { limits, connections }: ArrivalParts,
): ApiError | undefined {
  if (connections.isTrusted(socket)) return undefined;
  try {
    const release = limits.hold('connections', from);
    socket.once('close', release);
    connections.authenticate(socket);
    return undefined;
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
}

/**
 * Two servers in a row that read such a request differently would see different requests. Node itself refuses two lengths, a length with
 * chunks, and line ends without a carriage return.
 */
function wrongHeaders({ headers, httpVersion, rawHeaders }: IncomingMessage): ApiError | undefined {
  if (headers.host === undefined && httpVersion === '1.1') return noHost;
  let hosts = 0;
  let tokens = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i];
    if (name?.length === 4 && name.toLowerCase() === 'host') hosts += 1;
    else if (name?.length === 13 && name.toLowerCase() === 'authorization') tokens += 1;
  }
  if (tokens > 1) return new ApiError('InvalidRequest', 'the header Authorization is given twice; send one');
  return hosts > 1 ? new ApiError('InvalidRequest', 'the header Host is given twice; send one') : undefined;
}

const noHost = new ApiError('InvalidRequest', 'the header Host is missing; HTTP/1.1 needs one');

/** URLs are kept in logs and histories, so a token in a URL is not accepted; the sender should learn why. */
function tokenInQuery(url: string): ApiError | undefined {
  if (!/[?&](?:access_|api_)?(?:token|key)=/i.test(url)) return undefined;
  return new ApiError(
    'Unauthenticated',
    'a token in the query is not read, because URLs are logged; send it as the header "Authorization: Bearer <token>", and replace this one',
  );
}
