import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { createConnection, createServer, type Server, type Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { GuestPort } from '../../api/agent-protocol.ts';
import { silentLogger } from '../../base/log.ts';
import { systemClock } from '../../base/system.ts';
import { forwardPorts, type PortForwarder, PortTaken } from './port-forwarder.ts';

/** Stands for the guest: it says back what it hears, in capitals. */
let guest: Server;
let guestUdp: UdpSocket;
let open: (PortForwarder | Server | Socket)[];
const bindAddress = '127.0.0.2';
const guestAddress = '127.0.0.1';

const portOf = (server: { address(): unknown }): number => {
  const address = server.address();
  return typeof address === 'object' && address !== null && 'port' in address ? Number(address.port) : 0;
};
/** Free a moment ago, and no other program wants ports on 127.0.0.2. */
const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, bindAddress);
  await once(server, 'listening');
  const port = portOf(server);
  server.close();
  await once(server, 'close');
  return port;
};
const forward = async (
  ports: readonly GuestPort[],
  target: () => Promise<string | undefined> = async () => guestAddress,
): Promise<PortForwarder> => {
  const forwarder = await forwardPorts({ ports, bindAddress, target, clock: systemClock, log: silentLogger });
  open.push(forwarder);
  return forwarder;
};
const connect = (port: number): Socket => {
  const socket = createConnection({ port, host: bindAddress, allowHalfOpen: true });
  open.push(socket);
  return socket;
};
/** A reset says the same as a close. */
const closeOf = (socket: Socket): Promise<void> => {
  socket.on('error', () => {});
  return new Promise((resolve) => socket.once('close', () => resolve()));
};
const allOf = async (socket: Socket): Promise<string> => {
  let text = '';
  for await (const piece of socket) text += String(piece);
  return text;
};

beforeEach(async () => {
  open = [];
  guest = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => {});
    socket.on('data', (bytes) => socket.write(String(bytes).toUpperCase()));
    socket.on('end', () => socket.end('BYE'));
  }).listen(0, guestAddress);
  guestUdp = createSocket('udp4', (bytes, from) => guestUdp.send(String(bytes).toUpperCase(), from.port, from.address));
  guestUdp.bind(0, guestAddress);
  await Promise.all([once(guest, 'listening'), once(guestUdp, 'listening')]);
});
afterEach(async () => {
  for (const each of open) if ('destroy' in each) each.destroy();
  for (const each of open) if (!('destroy' in each)) await each.close();
  guest.close();
  guestUdp.close();
});

it('passes both directions on, and the end of each by itself', async () => {
  const hostPort = await freePort();
  await forward([{ protocol: 'tcp', hostPort, guestPort: portOf(guest) }]);
  const socket = connect(hostPort);
  socket.end('hello ');
  expect(await allOf(socket)).toBe('HELLO BYE');
});

it('passes on more than fits into any buffer, byte for byte', async () => {
  const hostPort = await freePort();
  await forward([{ protocol: 'tcp', hostPort, guestPort: portOf(guest) }]);
  const socket = connect(hostPort);
  const told = 'abcdefghijklmnop'.repeat(256 * 1024);
  socket.end(told);
  expect((await allOf(socket)) === `${told.toUpperCase()}BYE`).toBe(true);
});

it('passes datagrams on, and each answer to whom it is for', async () => {
  const hostPort = await freePort();
  await forward([{ protocol: 'udp', hostPort, guestPort: portOf(guestUdp) }]);
  const clients = ['one', 'two'].map((word) => ({ word, socket: createSocket('udp4') }));
  for (const { word, socket } of clients) {
    const answered = once(socket, 'message');
    socket.send(word, hostPort, bindAddress);
    expect(String((await answered)[0])).toBe(word.toUpperCase());
  }
  for (const { socket } of clients) socket.close();
});

it('closes a connection to a guest whose address nobody knows, and takes the next one', async () => {
  const hostPort = await freePort();
  const known: { address?: string } = {};
  await forward([{ protocol: 'tcp', hostPort, guestPort: portOf(guest) }], async () => known.address);
  const early = connect(hostPort);
  expect(await allOf(early)).toBe('');
  known.address = guestAddress;
  const socket = connect(hostPort);
  socket.end('now ');
  expect(await allOf(socket)).toBe('NOW BYE');
});

it('closes the connection when the guest has nobody listening', async () => {
  const [hostPort, guestPort] = [await freePort(), await freePort()];
  await forward([{ protocol: 'tcp', hostPort, guestPort }]);
  const socket = connect(hostPort);
  socket.resume();
  await closeOf(socket);
});

it('gives its ports back and ends its connections when it is closed', async () => {
  const hostPort = await freePort();
  const forwarder = await forward([{ protocol: 'tcp', hostPort, guestPort: portOf(guest) }]);
  const socket = connect(hostPort);
  socket.write('x');
  await once(socket, 'data');
  const ended = closeOf(socket);
  await forwarder.close();
  socket.end();
  await ended;
  await forward([{ protocol: 'tcp', hostPort, guestPort: portOf(guest) }]);
});

it.each(['tcp', 'udp'] as const)(
  'says which %s port another program has, and then listens on none',
  async (protocol) => {
    const [first, taken] = [await freePort(), await freePort()];
    const holder = await forward([{ protocol, hostPort: taken, guestPort: 1 }]);
    const ports: GuestPort[] = [
      { protocol, hostPort: first, guestPort: 1 },
      { protocol, hostPort: taken, guestPort: 2 },
    ];
    const refusal: unknown = await forward(ports).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(PortTaken);
    expect(refusal).toMatchObject({ port: { hostPort: taken } });
    await holder.close();
    await forward(ports);
  },
);

it.each(['tcp', 'udp'] as const)('leaves nothing open of a %s port that another program has', async (protocol) => {
  const hostPort = await freePort();
  await forward([{ protocol, hostPort, guestPort: 1 }]);
  const before = (await readdir('/proc/self/fd')).length;
  const tries = 100; // other tests of this process open a few files meanwhile
  for (let i = 0; i < tries; i++)
    await expect(forward([{ protocol, hostPort, guestPort: 2 }])).rejects.toThrow(PortTaken);
  await turn();
  expect((await readdir('/proc/self/fd')).length - before).toBeLessThan(tries / 2);
});
