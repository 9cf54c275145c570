// Publishes a guest's ports on this host: passes TCP connections and UDP packets on to the guest's own address, as long as the guest runs.
// For networks where nothing else does. What it holds is bounded, whatever a client or a guest does.

import { createSocket, type RemoteInfo, type Socket as UdpSocket } from 'node:dgram';
import { createConnection, createServer, type Server, type Socket } from 'node:net';
import type { GuestPort } from '../../api/agent-protocol.ts';
import type { Clock } from '../../base/clock.ts';
import { describeError, type Logger } from '../../base/log.ts';

export interface PortForwarderOptions {
  readonly ports: readonly GuestPort[];
  readonly bindAddress: string;
  /** Address of the guest; undefined while it is unknown: then connections are refused, and packets dropped. */
  readonly target: () => Promise<string | undefined>;
  readonly clock: Clock;
  readonly log: Logger;
}

export interface PortForwarder {
  /** Ends all connections too. Resolves when the ports are free; a second time is harmless. */
  close(): Promise<void>;
}

/** A port that cannot be listened on. */
export class PortTaken extends Error {
  override name = 'PortTaken';
  readonly port: GuestPort;
  constructor(port: GuestPort, cause: unknown) {
    super(`port ${port.hostPort}/${port.protocol} cannot be listened on: ${describeError(cause)}`, { cause });
    this.port = port;
  }
}

const connectionsMax = 1024; // of one port; each holds two descriptors
const udpClientsMax = 256;
const udpIdleMs = 60_000; // as the shortest that RFC 4787 (4.3) recommends and common routers keep
const connectTimeoutMs = 10_000;

/** Throws `PortTaken`, and then listens on none. */
export async function forwardPorts(options: PortForwarderOptions): Promise<PortForwarder> {
  const listening: PortForwarder[] = [];
  let closing: Promise<unknown> | undefined;
  const close = async (): Promise<void> => {
    closing ??= Promise.all(listening.map((each) => each.close()));
    await closing;
  };
  try {
    for (const port of options.ports)
      listening.push(await (port.protocol === 'tcp' ? forwardTcp(port, options) : forwardUdp(port, options)));
  } catch (error) {
    await close();
    throw error;
  }
  return { close };
}

async function forwardTcp(
  port: GuestPort,
  { bindAddress, target, clock, log }: PortForwarderOptions,
): Promise<PortForwarder> {
  const open = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (client) => {
    keep(open, client);
    target()
      .then((host) => {
        if (host === undefined) throw new Error('the address of the guest is not known yet');
        if (client.destroyed) return;
        const guest = createConnection({ host, port: port.guestPort, allowHalfOpen: true });
        keep(open, guest);
        const timer = clock.setTimer(connectTimeoutMs, () => guest.destroy(), { background: true });
        guest.once('connect', () => timer.cancel());
        guest.once('close', () => timer.cancel());
        join(client, guest);
      })
      .catch((error: unknown) => {
        log.debug('cannot forward a connection', { port: port.hostPort, error: describeError(error) });
        client.destroy();
      });
  });
  server.maxConnections = connectionsMax;
  await listen(server, port, bindAddress);
  server.on('error', (error) => log.debug('a published port cannot take a connection', { error: error.message }));
  return {
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of open) socket.destroy();
      }),
  };
}

function listen(server: Server, port: GuestPort, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const refused = (error: Error): void => reject(new PortTaken(port, error));
    server.once('error', refused);
    server.listen({ port: port.hostPort, host, exclusive: true }, () => {
      server.off('error', refused);
      resolve();
    });
  });
}

function keep(open: Set<Socket>, socket: Socket): void {
  open.add(socket);
  socket.once('close', () => open.delete(socket));
  socket.on('error', () => {}); // its close follows, and ends the other side
}

/** `pipe` waits for a slow reader, so nothing piles up; each half ends by itself, and a broken side takes the other with it. */
function join(client: Socket, guest: Socket): void {
  client.pipe(guest);
  guest.pipe(client);
  client.once('close', (broken) => end(guest, broken));
  guest.once('close', (broken) => end(client, broken));
}

function end(socket: Socket, broken: boolean): void {
  if (broken) socket.resetAndDestroy();
  else socket.destroySoon();
}

/** One socket toward the guest for each client, so that answers find their way back. */
async function forwardUdp(
  port: GuestPort,
  { bindAddress, target, clock, log }: PortForwarderOptions,
): Promise<PortForwarder> {
  const server = createSocket('udp4');
  /** The longest idle first. */
  const clients = new Map<string, { readonly socket: UdpSocket; lastUsedMs: number }>();
  const drop = (name: string): void => {
    clients.get(name)?.socket.close();
    clients.delete(name);
  };
  const clientOf = (from: RemoteInfo): UdpSocket => {
    const name = `${from.address}:${from.port}`;
    const known = clients.get(name);
    if (known !== undefined) clients.delete(name);
    const [oldest] = clients.keys();
    if (known === undefined && clients.size >= udpClientsMax && oldest !== undefined) drop(oldest);
    const socket = known?.socket ?? createSocket('udp4');
    if (known === undefined) {
      socket.on('error', () => drop(name)); // as when the guest refuses: the next packet tries again
      socket.on('message', (bytes) => server.send(bytes, from.port, from.address));
    }
    clients.set(name, { socket, lastUsedMs: clock.monotonicMs() });
    return socket;
  };
  server.on('message', (bytes, from) => {
    target()
      .then((host) => {
        if (host !== undefined && !over.signal.aborted) clientOf(from).send(bytes, port.guestPort, host);
      })
      .catch((error: unknown) =>
        log.debug('cannot forward a packet', { port: port.hostPort, error: describeError(error) }),
      );
  });
  const over = new AbortController();
  const sweep = (): void => {
    for (const [name, { lastUsedMs }] of clients) if (clock.monotonicMs() - lastUsedMs > udpIdleMs) drop(name);
    timer = clock.setTimer(udpIdleMs, sweep, { background: true });
  };
  let timer = clock.setTimer(udpIdleMs, sweep, { background: true });
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => {
      timer.cancel();
      server.close(); // a socket that could not be bound is open all the same
      reject(new PortTaken(port, error));
    });
    server.bind({ port: port.hostPort, address: bindAddress, exclusive: true }, resolve);
  });
  server.on('error', (error) => log.debug('a published port cannot answer', { error: error.message }));
  return {
    close: () =>
      new Promise((resolve) => {
        over.abort();
        timer.cancel();
        for (const name of [...clients.keys()]) drop(name);
        server.close(() => resolve());
      }),
  };
}
