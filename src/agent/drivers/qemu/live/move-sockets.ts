// The unix sockets through which the QEMU of a moving guest reaches the target: QEMU connects, and each connection is forwarded to the waiting
// machine. They are in the same folder as the other sockets of this QEMU.

import { once } from 'node:events';
import { chmod, constants, open, rm } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { joinStreams } from '../../../migration/direct/join-streams.ts';

export interface MoveSockets {
  /** The path as QEMU sees it. */
  pathOf(name: string): string;
  close(): Promise<void>;
}

/** Of Linux, for all architectures that Node runs on; Node does not name it. */
const referenceOnly = 0o10000000;

export const moveSocket = (name: string): string => `move-${name}.sock`;

interface Place {
  readonly directory: string;
  /** Below the directory, where QEMU has its sockets; empty: there itself. */
  readonly folder: string;
}

export function openMoveSockets(
  place: Place,
  names: readonly string[],
  dial: (name: string) => Promise<Duplex>,
): Promise<MoveSockets> {
  return openSockets(place, names, (socket, name) => {
    dial(name).then(
      (other) => joinStreams(socket, other),
      () => void socket.destroy(),
    );
  });
}

export async function openSockets(
  { directory, folder }: Place,
  names: readonly string[],
  onConnection: (socket: Socket, name: string) => void,
): Promise<MoveSockets> {
  const sockets = new Set<Socket>();
  const servers: Server[] = [];
  const within = join(directory, folder);
  const close = async (): Promise<void> => {
    for (const socket of sockets) socket.destroy();
    for (const server of servers) server.close();
    for (const name of names) await rm(join(within, moveSocket(name)), { force: true });
  };
  // A socket's path may have 107 bytes only.
  const opened = await open(within, referenceOnly | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  try {
    for (const name of names) {
      const path = join(within, moveSocket(name));
      await rm(path, { force: true });
      const server = createServer((socket) => {
        sockets.add(socket);
        socket.on('close', () => sockets.delete(socket));
        socket.on('error', () => {}); // QEMU sees that it is closed
        onConnection(socket, name);
      });
      server.listen(`/proc/self/fd/${opened.fd}/${moveSocket(name)}`);
      await once(server, 'listening');
      servers.push(server);
      await chmod(path, 0o666); // the folder is closed to all others
    }
  } catch (error) {
    await close();
    throw error;
  } finally {
    await opened.close();
  }
  return { pathOf: (name) => join(folder, moveSocket(name)), close };
}
