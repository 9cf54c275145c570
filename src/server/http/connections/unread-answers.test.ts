import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { createManualClock } from '../../../base/manual-clock.ts';
import { startTestServer } from '../../testing.ts';
import { UnreadAnswers } from './unread-answers.ts';

const ended: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ended.splice(0).reverse()) await end();
});

/** More than the sockets of both sides hold. */
const large = Buffer.alloc(16 * 1024 * 1024, 'x');

async function serving(bytesMax?: number) {
  const clock = createManualClock();
  const unread = new UnreadAnswers({
    clock,
    close: (socket) => socket.destroy(),
    ...(bytesMax === undefined ? {} : { bytesMax }),
  });
  const answer = (socket: Socket, response: ServerResponse, body: Buffer): void => {
    response.end(body);
    unread.sent(socket, response, body.byteLength);
  };
  const server = createServer((request, response) =>
    answer(request.socket, response, request.url === '/large' ? large : Buffer.from('small')),
  ).listen(0, '127.0.0.1');
  ended.push(() => (server.closeAllConnections(), server.close(), unread.stop()));
  await once(server, 'listening');
  return {
    unread,
    clock,
    /** Asks, and reads nothing until it is told to. Resolves when the answer was made. */
    async ask(path: string): Promise<Socket> {
      const client = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => {});
      ended.push(() => client.destroy());
      client.pause();
      client.write(`GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`);
      await once(server, 'request');
      return client;
    },
  };
}

describe('unread answers', () => {
  it('count until they are read', async () => {
    const { unread, ask } = await serving();
    await ask('/small');
    expect(unread.bytes).toBe(0);
    const client = await ask('/large');
    expect(unread.bytes).toBe(large.byteLength);
    client.resume();
    await expect.poll(() => unread.bytes).toBe(0);
  });

  it('count no more when their connection is closed', async () => {
    const { unread, ask } = await serving();
    const client = await ask('/large');
    client.destroy();
    await expect.poll(() => unread.bytes).toBe(0);
  });

  it('close the connection that has waited for longest, when they hold too much in all', async () => {
    const { unread, ask } = await serving(2 * large.byteLength);
    const oldest = await ask('/large');
    const others = [await ask('/large'), await ask('/large')];
    oldest.resume();
    await once(oldest, 'close');
    expect(unread.bytes).toBe(2 * large.byteLength);
    expect(others.some(({ destroyed }) => destroyed)).toBe(false);
  });

  it('close their connection after two minutes, each from its own beginning', async () => {
    const { unread, clock, ask } = await serving();
    const first = await ask('/large');
    clock.advance(60_000);
    await ask('/large');
    clock.advance(60_000);
    expect(unread.bytes).toBe(large.byteLength);
    first.resume();
    await once(first, 'close');
    clock.advance(60_000);
    expect(unread.bytes).toBe(0);
    expect(clock.nextDueMs()).toBeUndefined();
  });
});

it('a server makes one answer for a client that asks 40 times and reads none, and the others when it reads', async () => {
  const server = await startTestServer();
  ended.push(() => server.close());
  const { port } = new URL(server.url);
  const client = connect(Number(port), '127.0.0.1');
  ended.push(() => client.destroy());
  client.pause();
  client.write('GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(40));
  const size = (await (await fetch(`${server.url}/openapi.json`)).arrayBuffer()).byteLength;
  const unreadBytes = async (): Promise<number> => {
    const text = await (await fetch(`${server.url}/metrics`, { headers: { authorization: 'Bearer operator' } })).text();
    return Number(/berth_unread_answers_bytes (\d+)/.exec(text)?.[1]);
  };
  await expect.poll(unreadBytes).toBeGreaterThan(0);
  expect(await unreadBytes()).toBe(size);
  let bytes = 0;
  client.on('data', (piece) => (bytes += piece.byteLength));
  client.resume();
  await expect.poll(() => bytes, { timeout: 10_000 }).toBeGreaterThan(40 * size);
});
