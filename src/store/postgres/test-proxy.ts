// A proxy to the server that a test can cut at a chosen point: before a request, after its response, or in between. It
// never depends on time.

import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';

export interface TestProxy {
  readonly port: number;
  /**
   * Cuts every connection when the server responds to a request that contains `text`; the response is lost. Resolves
   * when that has happened.
   */
  loseAnswerTo(text: string): Promise<void>;
  /**
   * Cuts the client's connection when it sends a request that contains `text`. The request is held until `deliver` is
   * called.
   */
  delay(text: string): Promise<{ deliver(): Promise<void> }>;
  /** From now on nothing passes, without an error. */
  silence(): void;
  close(): Promise<void>;
}

interface Link {
  readonly client: Socket;
  readonly server: Socket;
}

export async function startProxy(serverPort: number): Promise<TestProxy> {
  const links = new Set<Link>();
  let silent = false;
  /** Called with what a client has sent; returns true to hold it. */
  let onRequest: ((link: Link, bytes: Buffer) => boolean) | null = null;

  const listener = createServer((client) => {
    const server = connect(serverPort, '127.0.0.1');
    const link: Link = { client, server };
    links.add(link);
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      from.on('data', (bytes: Buffer) => {
        if (silent || (from === client && onRequest?.(link, bytes))) return;
        to.write(bytes);
      });
      from.on('error', () => to.destroy());
      from.on('close', () => held !== link && to.destroy());
    }
  }).listen(0, '127.0.0.1');
  let held: Link | null = null;
  await once(listener, 'listening');
  const address = listener.address();
  if (address === null || typeof address === 'string') throw new Error('a listening server has a port');
  return {
    port: address.port,
    loseAnswerTo: (text) =>
      new Promise((resolve) => {
        onRequest = (link, bytes) => {
          if (!bytes.includes(text)) return false;
          onRequest = null;
          link.server.removeAllListeners('data');
          link.server.once('data', () => {
            link.client.destroy();
            resolve();
          });
          return false;
        };
      }),
    delay: (text) =>
      new Promise((resolve) => {
        onRequest = (link, bytes) => {
          if (!bytes.includes(text)) return false;
          onRequest = null;
          held = link;
          link.client.destroy();
          const deliver = async (): Promise<void> => {
            const closed = link.server.closed ? undefined : once(link.server, 'close');
            link.server.end(bytes);
            await closed;
          };
          resolve({ deliver });
          return true;
        };
      }),
    silence() {
      silent = true;
    },
    async close() {
      for (const { client, server } of links) {
        client.destroy();
        server.destroy();
      }
      listener.close();
      await once(listener, 'close');
    },
  };
}
