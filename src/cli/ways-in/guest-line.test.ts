import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { createClient } from '../../api/client/client.ts';
import { Servers } from '../../api/client/servers.ts';
import { systemFetch } from '../../base/system.ts';
import { openGuestLine } from './guest-line.ts';

const server = createServer();
afterEach(() => void server.close());

it('misses nothing of what comes in one piece with the answer', async () => {
  server.on('upgrade', (request, socket) => {
    // RFC 6455, 4.2.2 and 5.2.
    const key = `${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`;
    const accept = createHash('sha1').update(key).digest('base64');
    const greeting = Buffer.from('RFB 003.008\n');
    const head = `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\nSec-WebSocket-Protocol: berth.v1\r\n\r\n`;
    socket.write(Buffer.concat([Buffer.from(head), Buffer.from([0x82, greeting.length]), greeting]));
    socket.on('error', () => {});
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address: AddressInfo = server.address() as AddressInfo; // it listens on a port
  const url = `http://127.0.0.1:${address.port}`;
  const client = createClient({ fetch: (at, init) => systemFetch(at, init), url });
  const line = await openGuestLine(
    { client, servers: new Servers({ urls: [url] }), project: 'default' },
    { name: 'web', way: 'vnc' },
  );
  for await (const message of line.messages()) {
    expect(Buffer.from(message instanceof Uint8Array ? message : []).toString()).toBe('RFB 003.008\n');
    break;
  }
  line.end();
  server.closeAllConnections();
});
