// One agent per data directory. The lock is a name in the kernel's abstract socket namespace: it is gone with its process,
// however that ends, and there is no file that could be left behind. It does not hold between network namespaces.

import { createHash } from 'node:crypto';
import { realpath } from 'node:fs/promises';
import { createServer } from 'node:net';

export interface DataDirectoryLock {
  release(): Promise<void>;
}

/** Throws when another agent holds `directory`, which must exist. */
export async function lockDataDirectory(directory: string): Promise<DataDirectoryLock> {
  const real = await realpath(directory);
  const name = createHash('sha256').update(real).digest('hex').slice(0, 32);
  const server = createServer((socket) => socket.destroy());
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => {
      const taken = 'code' in error && error.code === 'EADDRINUSE';
      reject(
        taken
          ? new Error(`cannot use ${directory}: another agent is using it; stop that one, or set another dataDirectory`)
          : new Error(`cannot lock ${directory}: ${error.message}`, { cause: error }),
      );
    });
    server.listen(`\0berth-agent-${name}`, resolve);
  });
  server.unref();
  return {
    release: () => new Promise((resolve) => server.close(() => resolve())),
  };
}
