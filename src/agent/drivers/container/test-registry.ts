// A registry of container images on loopback, for tests of pulls: it has none, and never ends its answer for those called `endless`.

import { once } from 'node:events';
import { createServer } from 'node:http';

export interface TestRegistry {
  /** Host and port. */
  readonly location: string;
  /** What was asked for so far: `GET /v2/endless/image/manifests/1`. */
  readonly requests: readonly string[];
  stop(): Promise<void>;
}

export async function startRegistry(): Promise<TestRegistry> {
  const requests: string[] = [];
  const server = createServer((asked, answer) => {
    requests.push(`${asked.method} ${asked.url}`);
    if (asked.url === '/v2/') return void answer.end('{}');
    if (asked.url?.includes('/endless/')) {
      answer.writeHead(200, { 'content-type': 'application/vnd.docker.distribution.manifest.v2+json' });
      return void answer.write('{'); // and nothing more
    }
    answer.writeHead(404, { 'content-type': 'application/json' });
    answer.end('{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}');
  });
  server.listen({ port: 0, host: '127.0.0.1' });
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return {
    location: `127.0.0.1:${address.port}`,
    requests,
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
