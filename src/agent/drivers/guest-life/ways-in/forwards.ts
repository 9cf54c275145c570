// Ways to ports of a guest that are not published: QEMU's user network can open one while the guest runs. Each stands on loopback for as long
// as somebody uses it, for QEMU ends a connection that it has not taken yet when its way is closed.

import type { Duplex } from 'node:stream';
import { createServer } from 'node:net';
import { once } from 'node:events';
import { type Clock, sleep } from '../../../../base/clock.ts';
import { describeError, type Logger } from '../../../../base/log.ts';
import { DriverError } from '../../../host/driver-error.ts';
import { connectTcp } from './connect-tcp.ts';

export interface Forwards {
  /** Connected to this port of the guest. Throws `NotPossible`. */
  dial(port: number): Promise<Duplex>;
  /** Resolves once the guest has accepted a connection at this port. Throws `NotPossible`. */
  reach(port: number, signal: AbortSignal): Promise<void>;
  /** Closes ways that an agent left open when it was killed. Those to `published` ports of this host stay. Never rejects: it is tried. */
  closeLeft(published: readonly number[]): Promise<void>;
}

const host = '127.0.0.1';
const triesMax = 5;
/** Most guests answer at once. */
const lookMs = { first: 5, most: 100 };

/** `monitor` says a line to QEMU's human monitor; what it throws is thrown. `netdev` is QEMU's name of the guest's network. */
export function createForwards({
  monitor,
  netdev,
  clock,
  log,
}: {
  readonly monitor: (line: string) => Promise<string>;
  readonly netdev: string;
  readonly clock: Clock;
  readonly log: Logger;
}): Forwards {
  const open = new Map<number, { readonly hostPort: Promise<number>; users: number }>();
  /** Ports of this host that lead there now, or are about to. */
  const ours = new Set<number>();

  const begin = async (port: number): Promise<number> => {
    for (let tries = 1; ; tries++) {
      const hostPort = await freePort();
      ours.add(hostPort);
      const refusal = (await monitor(`hostfwd_add ${netdev} tcp:${host}:${hostPort}-:${port}`)).trim();
      if (refusal === '') return hostPort;
      ours.delete(hostPort);
      // Somebody else was faster with that port.
      if (tries === triesMax) throw new DriverError('NotPossible', `QEMU opens no way to port ${port}: ${refusal}`);
    }
  };
  const release = (port: number): void => {
    const way = open.get(port);
    if (way === undefined) return;
    way.users -= 1;
    if (way.users > 0) return;
    open.delete(port);
    way.hostPort.then(close).catch(() => {}); // it ends with QEMU
  };
  const close = async (hostPort: number): Promise<void> => {
    await monitor(`hostfwd_remove ${netdev} tcp:${host}:${hostPort}`);
    ours.delete(hostPort);
  };
  const closeOthers = async (kept: readonly number[]): Promise<void> => {
    for (const forward of forwardsOf(await monitor('info usernet'))) {
      const [protocol, address, text] = forward.split(' ');
      const hostPort = Number(text);
      if (protocol !== 'tcp' || address !== host || kept.includes(hostPort) || ours.has(hostPort)) continue;
      await close(hostPort);
    }
  };
  /** QEMU accepts a connection before it asks the guest: only its list of connections says whether the guest has. */
  const untilAccepted = async (
    hostPort: number,
    { port, signal }: { readonly port: number; readonly signal: AbortSignal },
  ): Promise<void> => {
    for (let delayMs = lookMs.first; !signal.aborted; delayMs = Math.min(2 * delayMs, lookMs.most)) {
      if (isAccepted(await monitor('info usernet'), hostPort)) return;
      await sleep(clock, delayMs, signal);
    }
    throw new DriverError('NotPossible', `port ${port} of the guest accepts no connection`);
  };
  return {
    async dial(port) {
      let way = open.get(port);
      if (way === undefined) {
        way = { hostPort: begin(port), users: 0 };
        open.set(port, way);
      }
      way.users += 1;
      try {
        const socket = await connectTcp({ host, port: await way.hostPort }, `port ${port} of the guest`);
        socket.once('close', () => release(port));
        return socket;
      } catch (error) {
        release(port);
        throw error;
      }
    },
    async reach(port, signal) {
      // Its own way: another connection by the same one could not be told from it.
      const hostPort = await begin(port);
      const over = new AbortController();
      const end = (): void => over.abort();
      signal.addEventListener('abort', end, { once: true });
      try {
        const socket = await connectTcp({ host, port: hostPort }, `port ${port} of the guest`);
        // QEMU closes it when the guest has refused it.
        for (const event of ['end', 'close', 'error']) socket.once(event, end);
        socket.resume();
        if (signal.aborted) end();
        await untilAccepted(hostPort, { port, signal: over.signal }).finally(() => socket.destroy());
      } finally {
        signal.removeEventListener('abort', end);
        close(hostPort).catch(() => {}); // it ends with QEMU
      }
    },
    closeLeft: (published) =>
      closeOthers(published).catch((error: unknown) =>
        log.debug('cannot look for ways into a guest that are not used any more', { error: describeError(error) }),
      ),
  };
}

/** Whether a connection by this port of the host has been accepted by the guest, from what `info usernet` prints. */
export function isAccepted(said: string, hostPort: number): boolean {
  const rows = said.matchAll(/^\s*TCP\[([A-Z0-9_]+)\]\s+\d+\s+\S+\s+(\d+)\s/gm);
  return [...rows].some(([, state = '', port]) => Number(port) === hostPort && !unaccepted.has(state));
}

/** QEMU's names of states in which the guest has not answered yet, or has refused. */
const unaccepted: ReadonlySet<string> = new Set(['HOST_FORWARD', 'NONE', 'CLOSED', 'LISTEN', 'SYN_SENT', 'SYN_RCVD']);

/** As "tcp 127.0.0.1 20022 22", from what `info usernet` of QEMU's monitor prints. */
export function forwardsOf(said: string): ReadonlySet<string> {
  const rows = said.matchAll(/^\s*(TCP|UDP)\[HOST_FORWARD\]\s+\d+\s+(\S+)\s+(\d+)\s+\S+\s+(\d+)\s/gm);
  return new Set(
    [...rows].map(([, protocol = '', address, hostPort, guestPort]) =>
      [protocol.toLowerCase(), address, hostPort, guestPort].join(' '),
    ),
  );
}

/** Most likely still free in a moment. */
async function freePort(): Promise<number> {
  const server = createServer();
  server.listen({ host, port: 0 });
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new DriverError('Internal', 'this host gives out no port');
  return address.port;
}
