// The load balancer of one host: TCP from the agent to a control plane that says it is ready. Connections to one that stops saying so
// are cut, as HAProxy's "on-marked-down shutdown-sessions" does. It runs beside the agent and dies with it.

import { connect, createServer, type Socket } from 'node:net';
import { once } from 'node:events';

const askEveryMs = 500;
const answerTimeoutMs = 1_000;
/** This many answers in a row must be missing before a control plane counts as down. */
const missedMax = 3;

interface Backend {
  readonly url: URL;
  missed: number;
  readonly sockets: Set<Socket>;
}

/** Resolves to the port it listens on at 127.0.0.1. */
export async function startBalancer(urls: readonly string[], first: number): Promise<number> {
  const backends = urls.map((url): Backend => ({ url: new URL(url), missed: 0, sockets: new Set() }));
  let turn = first;

  const server = createServer((client) => {
    const up = backends.filter(({ missed }) => missed < missedMax);
    const from = up.length > 0 ? up : backends;
    const backend = from[turn++ % from.length];
    if (backend === undefined) return client.destroy();
    const upstream = connect(Number(backend.url.port), backend.url.hostname);
    backend.sockets.add(upstream);
    const end = (): void => {
      backend.sockets.delete(upstream);
      upstream.destroy();
      client.destroy();
    };
    for (const socket of [client, upstream]) socket.on('error', end).on('close', end);
    client.pipe(upstream).pipe(client);
    return undefined;
  });

  const ask = async (backend: Backend): Promise<void> => {
    try {
      const { ok } = await fetch(new URL('/readyz', backend.url), { signal: AbortSignal.timeout(answerTimeoutMs) });
      backend.missed = ok ? 0 : backend.missed + 1;
    } catch {
      backend.missed += 1;
    }
    if (backend.missed < missedMax) return;
    for (const socket of backend.sockets) socket.destroy();
  };
  for (const backend of backends) setInterval(() => void ask(backend), askEveryMs);

  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('a listening server has a port');
  return address.port;
}
