import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { Pipelines } from './pipelines.ts';

const ended: (() => void)[] = [];
afterEach(() => {
  for (const end of ended.splice(0).reverse()) end();
});

/** A server that answers a request when the test says so; requests to /small count as brief. */
async function serving(waitingMost?: number) {
  const begun: { path: string; answer: () => void }[] = [];
  const overflowed = Promise.withResolvers<Socket>();
  let arrived = 0;
  let atOnce = false;
  let expected: { count: number; resolve: () => void } | undefined;
  const pipelines = new Pipelines({
    overflow: (socket) => {
      overflowed.resolve(socket);
      socket.destroy();
    },
    ...(waitingMost === undefined ? {} : { waitingMost }),
  });
  const begin = (path: string, response: ServerResponse): void => {
    begun.push({ path, answer: () => void response.end(path) });
    if (atOnce) response.end(path);
  };
  const server = createServer((request, response) => {
    const path = request.url ?? '';
    pipelines.enter(
      request.socket,
      response,
      () => path.startsWith('/small'),
      () => begin(path, response),
    );
    arrived += 1;
    if (arrived === expected?.count) expected.resolve();
  }).listen(0, '127.0.0.1');
  ended.push(() => (server.closeAllConnections(), server.close()));
  await once(server, 'listening');
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => {});
  ended.push(() => client.destroy());
  return {
    begun,
    overflowed: overflowed.promise,
    paths: () => begun.map(({ path }) => path),
    client,
    arrived: () => arrived,
    answerAtOnce: () => (atOnce = true),
    /** Resolves when all have arrived. */
    send(paths: readonly string[]): Promise<void> {
      const { promise, resolve } = Promise.withResolvers<void>();
      expected = { count: arrived + paths.length, resolve };
      client.write(paths.map((path) => `GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`).join(''));
      return promise;
    },
  };
}

const many = (count: number, name: string): string[] => Array.from({ length: count }, (_, i) => `/${name}/${i}`);

describe('pipelined requests', () => {
  it('begin one after the other, when the answer before them has gone out', async () => {
    const server = await serving();
    await server.send(['/a', '/b', '/c']);
    expect(server.paths()).toEqual(['/a']);
    for (const path of ['/a', '/b', '/c']) {
      await expect.poll(() => server.begun.at(-1)?.path).toBe(path);
      server.begun.at(-1)?.answer();
    }
  });

  it('begin early, 64 at a time, when their answers are small, but never before one that came earlier', async () => {
    const server = await serving();
    await server.send(['/large', ...many(70, 'small'), '/large/2', '/small/last']);
    expect(server.begun).toHaveLength(1 + 64);
    server.begun[0]?.answer();
    await expect.poll(() => server.begun.length).toBe(1 + 1 + 64);
    for (const { answer } of server.begun.splice(0)) answer();
    await expect.poll(() => server.paths()).toEqual(many(70, 'small').slice(65));
    for (const { answer } of server.begun.splice(0)) answer();
    await expect.poll(() => server.paths()).toEqual(['/large/2', '/small/last']);
  });

  it('are not read further while many wait, and all answered in the end', async () => {
    const server = await serving();
    const paths = many(9_000, 'x'); // 290 KiB, some 2,000 of them in each read
    server.client.write(paths.map((path) => `GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`).join(''));
    await expect.poll(() => server.begun.length).toBe(1);
    const all = Promise.withResolvers<void>();
    let text = '';
    server.client.on('data', (bytes) => {
      text = text.slice(-200) + bytes.toString();
      if (text.endsWith('/x/8999')) all.resolve();
    });
    server.answerAtOnce();
    expect(server.arrived()).toBeLessThan(paths.length);
    server.begun[0]?.answer();
    await all.promise;
    expect(server.paths()).toEqual(paths);
  });

  it('close their connection when too many wait in all', async () => {
    const server = await serving(200);
    server.client.write(
      many(300, 'x')
        .map((path) => `GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`)
        .join(''),
    );
    await server.overflowed;
    await once(server.client, 'close');
  });
});
