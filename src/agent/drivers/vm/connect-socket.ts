// A connection to a unix socket of a machine, however long its folder's path is. Says nothing on it.

import { once } from 'node:events';
import { open } from 'node:fs/promises';
import { createConnection, type Socket } from 'node:net';
import { basename, dirname } from 'node:path';

/** Connected. Throws what the kernel says: `ENOENT`, `ECONNREFUSED`. */
export async function connectSocket(path: string): Promise<Socket> {
  // By way of an open directory: a socket's path may have 107 bytes only.
  const directory = await open(dirname(path), 'r');
  try {
    const socket = createConnection({ path: `/proc/self/fd/${directory.fd}/${basename(path)}` });
    await once(socket, 'connect');
    return socket;
  } finally {
    await directory.close();
  }
}
