// A WebSocket to the host of a guest: docs/access.md. A ticket from the server stands for the session, is used once and never stands in an
// address.

import { type HostControl, type Ticket, type TicketRequest } from '../../src/api/access-protocol.ts';
import type { Static } from 'typebox';
import { client } from './client.ts';

export interface Way {
  readonly name: string;
  readonly project: string;
  readonly way: 'console' | 'exec' | 'vnc';
  readonly query?: Readonly<Record<string, string | number>>;
}

/** Not connected yet. Throws `ApiError` when the server gives no ticket. */
export async function guestSocket({ name, project, way, query = {} }: Way): Promise<WebSocket> {
  const path = `/v1/instances/${encodeURIComponent(name)}`;
  const { protocols } = await client.json<Static<typeof Ticket>>(`${path}/tickets`, {
    method: 'POST',
    query: { project },
    body: { way } satisfies Static<typeof TicketRequest>,
  });
  const url = new URL(`${path}/${way}`, location.origin);
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
  for (const [key, value] of Object.entries({ project, ...query })) url.searchParams.set(key, String(value));
  const socket = new WebSocket(url, protocols);
  socket.binaryType = 'arraybuffer';
  return socket;
}

/** How a connection ended: the last word of the host, if it had one. */
export interface SocketEnd {
  /** False: the handshake was refused. A browser does not say why. */
  readonly opened: boolean;
  readonly last: HostControl | undefined;
}

/** Resolves when the connection is over; what arrives before is handed on. */
export function carry(
  socket: WebSocket,
  on: { opened?(): void; bytes(bytes: Uint8Array): void; control?(message: HostControl): void },
): Promise<SocketEnd> {
  let opened = false;
  let last: HostControl | undefined;
  const { promise, resolve } = Promise.withResolvers<SocketEnd>();
  socket.addEventListener('open', () => {
    opened = true;
    on.opened?.();
  });
  socket.addEventListener('message', ({ data }: MessageEvent<ArrayBuffer | string>) => {
    if (typeof data !== 'string') return on.bytes(new Uint8Array(data));
    last = JSON.parse(data) as HostControl; // the protocol
    on.control?.(last);
  });
  socket.addEventListener('close', () => resolve({ opened, last }));
  return promise;
}
