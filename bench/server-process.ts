// A control plane in a process of its own, so that what is measured shares no event loop with the load.

import { once } from 'node:events';
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { silentLogger } from '../src/base/log.ts';
import { startServer } from '../src/server/run.ts';

export interface ServerProcess {
  readonly url: string;
  readonly operatorToken: string;
  readonly pid: number;
  hostToken(name: string): Promise<string>;
  close(): Promise<void>;
}

type Reply = { readonly url: string; readonly operatorToken: string } | { readonly token: string };

/** A server on a free port with an SQLite store in `directory`. */
export async function startServerProcess(directory: string): Promise<ServerProcess> {
  const child = fork(fileURLToPath(import.meta.url), ['--child', directory], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  const reply = async (): Promise<Reply> => {
    const [message] = await once(child, 'message');
    return message;
  };
  const started = await reply();
  if (!('url' in started)) throw new Error('the server did not start');
  return {
    ...started,
    pid: child.pid ?? 0,
    async hostToken(name) {
      child.send(name);
      const answer = await reply();
      return 'token' in answer ? answer.token : '';
    },
    async close() {
      child.disconnect();
      await once(child, 'exit');
    },
  };
}

if (process.argv[2] === '--child') {
  const config = {
    listen: '127.0.0.1:0',
    dataDirectory: process.argv[3] ?? '',
    insecure: false,
    logLevel: 'silent' as const,
    offlineAfterMs: 60_000,
    heartbeatMs: 10_000,
    restartDelayMs: 15_000,
    eventsKeptMs: 86_400_000,
    idempotencyKeptMs: 86_400_000,
  };
  const server = await startServer(config, { log: silentLogger });
  process.send?.({ url: server.url, operatorToken: server.operatorToken });
  process.on('message', (name) => process.send?.({ token: server.hostToken(String(name)) }));
  process.on('disconnect', () => void server.close());
}
