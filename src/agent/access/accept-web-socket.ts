// Accepts a WebSocket on a stream of the agent's link. The control plane passes the bytes in both directions without reading them,
// so the WebSocket protocol is spoken here, not there.

import { IncomingMessage, type IncomingHttpHeaders } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import { accessSubprotocol } from '../../api/access-protocol.ts';

/** Larger messages end the connection. Clients send pieces of at most 64 KiB. */
const messageBytesMax = 1024 * 1024;

const server = new WebSocketServer({
  noServer: true,
  clientTracking: false,
  perMessageDeflate: false, // it costs memory for each connection, and consoles and ports gain nothing
  maxPayload: messageBytesMax,
  handleProtocols: (offered) => (offered.has(accessSubprotocol) ? accessSubprotocol : false),
});

/** Answers the client's handshake; undefined: it was refused, with the reason. */
export function acceptWebSocket(stream: Duplex, headers: IncomingHttpHeaders): WebSocket | undefined {
  const request = new IncomingMessage(new Socket());
  request.method = 'GET';
  request.headers = {
    connection: 'Upgrade',
    upgrade: 'websocket',
    'sec-websocket-key': one(headers['sec-websocket-key']),
    'sec-websocket-version': one(headers['sec-websocket-version']),
    'sec-websocket-protocol': one(headers['sec-websocket-protocol']),
  };
  let accepted: WebSocket | undefined;
  server.handleUpgrade(request, stream, Buffer.alloc(0), (socket) => {
    accepted = socket;
  });
  return accepted;
}

function one(value: string | readonly string[] | undefined): string {
  return typeof value === 'string' ? value : '';
}
