// Stands between a driver and its engine, and lets one call that changes something fail: before the engine has heard of it, or after, so
// that the engine has done it and nobody knows.

import { once } from 'node:events';
import { createServer, request } from 'node:http';
import { rm } from 'node:fs/promises';

export interface EngineFailure {
  /** Which change fails, from 0 on. */
  readonly change: number;
  readonly when: 'before' | 'after';
}

export interface EngineProxy {
  readonly socketPath: string;
  /** Resolves when the call has failed. */
  readonly failed: Promise<void>;
  stop(): Promise<void>;
}

export async function startEngineProxy(options: {
  readonly socketPath: string;
  readonly behind: string;
  readonly fails: EngineFailure;
}): Promise<EngineProxy> {
  let changes = 0;
  const failed = Promise.withResolvers<void>();
  const server = createServer((asked, answer) => {
    const isChange = asked.method !== 'GET';
    const number = isChange ? changes++ : -1;
    const fails = options.fails.change === number ? options.fails.when : undefined;
    const drop = (): void => {
      asked.socket.destroy();
      failed.resolve();
    };
    if (fails === 'before') return drop();
    const onward = request(
      { socketPath: options.behind, method: asked.method, path: asked.url, headers: asked.headers, agent: false },
      (answered) => {
        if (fails === 'after') {
          answered.resume();
          answered.on('end', drop);
          return;
        }
        answer.writeHead(answered.statusCode ?? 500, answered.headers);
        answered.pipe(answer);
      },
    );
    onward.on('error', () => asked.socket.destroy());
    answer.on('close', () => onward.destroy());
    asked.pipe(onward);
  });
  server.listen(options.socketPath);
  await once(server, 'listening');
  return {
    socketPath: options.socketPath,
    failed: failed.promise,
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
      await rm(options.socketPath, { force: true });
    },
  };
}
