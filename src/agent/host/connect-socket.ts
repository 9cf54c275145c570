// A connection to a unix socket of a machine, however long its folder's path is. Says nothing on it.

import { once } from 'node:events';
import { constants, open } from 'node:fs/promises';
import { createConnection, type Socket } from 'node:net';

/** Connected. Throws what the kernel says: `ENOENT`, `ECONNREFUSED`. */
export function connectSocket(path: string): Promise<Socket> {
  return bySocket(path, async (short) => {
    const socket = createConnection({ path: short });
    await once(socket, 'connect');
    return socket;
  });
}

/** Of Linux, for all architectures that Node runs on; Node does not name it. */
const referenceOnly = 0o10000000;

/**
 * `connect` is given a path of the socket that is short enough for the kernel (a socket's path may have 107 bytes only), and that leads to nothing but
 * this very socket: a folder in which a guest's hypervisor may write can have a link in its place at any time.
 */
export async function bySocket<Result>(path: string, connect: (short: string) => Promise<Result>): Promise<Result> {
  const file = await open(path, referenceOnly | constants.O_NOFOLLOW);
  try {
    if (!(await file.stat()).isSocket()) throw new Error(`${path} is no socket`);
    return await connect(`/proc/self/fd/${file.fd}`);
  } finally {
    await file.close();
  }
}
