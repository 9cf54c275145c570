// Makes a WebSocket of a stream of the line. The control plane hands on what the client sent and what we answer, unread: so this end,
// not it, speaks the protocol with the client.

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
  perMessageDeflate: false, // consoles and ports gain nothing by it, and it costs memory for each connection
  maxPayload: messageBytesMax,
  handleProtocols: (offered) => (offered.has(accessSubprotocol) ? accessSubprotocol : false),
});

/** Answers the client's handshake; undefined: it was refused, and told why. */
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
