// One agent per data directory, and one data directory per agent. Each lock is a name in the kernel's abstract socket namespace: it is
// gone with its process, however that ends, and there is no file that could be left behind. It does not hold between network namespaces.

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
  const taken = `cannot use ${directory}: another agent is using it; stop that one, or set another dataDirectory`;
  return hold(`berth-agent-${name}`, { directory, taken });
}

/** Throws when another agent of this machine is `agentId`, out of another directory than `directory`: one of the two is a copy. */
export function lockAgentId(agentId: string, directory: string): Promise<DataDirectoryLock> {
  const taken = `cannot use ${directory}: an agent with a copy of it is running, for both hold the identity ${agentId}; stop that one, or give this one a data directory of its own`;
  return hold(`berth-${agentId}`, { directory, taken });
}

async function hold(
  name: string,
  { directory, taken }: { readonly directory: string; readonly taken: string },
): Promise<DataDirectoryLock> {
  const server = createServer((socket) => socket.destroy());
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => {
      const held = 'code' in error && error.code === 'EADDRINUSE';
      reject(held ? new Error(taken) : new Error(`cannot lock ${directory}: ${error.message}`, { cause: error }));
    });
    server.listen(`\0${name}`, resolve);
  });
  server.unref();
  return {
    release: () => new Promise((resolve) => server.close(() => resolve())),
  };
}
