// One message to receivers over real connections that do anything but answer.

import { once } from 'node:events';
import { createServer, request, type RequestListener, type Server } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Server as TcpServer } from 'node:net';
import type { LookupAddress } from 'node:dns';
import { afterEach, describe, expect, it } from 'vitest';
import { createManualClock } from '../../../base/manual-clock.ts';
import { createPost, type Posted } from './post.ts';
import { type GuardOptions, ReceiverGuard } from './receiver-guard.ts';

const servers: (Server | TcpServer)[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    if ('closeAllConnections' in server) server.closeAllConnections();
    server.close();
  }
});

const clock = createManualClock();

async function listen(server: Server | TcpServer): Promise<number> {
  servers.push(server);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return (server.address() as AddressInfo).port; // as listen() gives it
}

function postTo(url: string, options: GuardOptions = {}, signal = new AbortController().signal): Promise<Posted> {
  const post = createPost(new ReceiverGuard(['127.0.0.1/32'], options), clock);
  return post({ url, headers: { 'content-type': 'application/json' }, body: '{"a":"ü"}', signal });
}

async function postToReceiver(answers: RequestListener): Promise<Posted> {
  const port = await listen(createServer(answers));
  return postTo(`http://127.0.0.1:${port}/`);
}

describe('a receiver', () => {
  it.each<[string, RequestListener, Posted]>([
    ['takes it', (_, response) => response.writeHead(204).end(), { status: 204 }],
    ['takes it with words', (_, response) => response.end('thank you'), { status: 200 }],
    [
      'is elsewhere',
      (_, response) => response.writeHead(302, { location: 'http://169.254.169.254/latest/' }).end(),
      { status: 302, error: 'the receiver answered 302' },
    ],
    [
      'fails, and says until when',
      (_, response) => response.writeHead(503, { 'retry-after': '120' }).end(),
      { status: 503, retryAfterMs: 120_000, error: 'the receiver answered 503' },
    ],
    [
      'fails, and says nonsense',
      (_, response) => response.writeHead(503, { 'retry-after': '-1' }).end(),
      { status: 503, error: 'the receiver answered 503' },
    ],
    [
      'answers without an end',
      (_, response) => {
        const more = (): void => {
          while (!response.destroyed && response.write(Buffer.alloc(65_536)));
        };
        response.on('drain', more);
        more();
      },
      { status: 200 },
    ],
    ['hangs up', (request) => request.socket.destroy(), { error: expect.stringContaining('socket hang up') }],
    [
      'answers with headers of 100 kB',
      (_, response) => response.writeHead(200, { 'x-long': 'x'.repeat(100_000) }).end(),
      { error: expect.stringContaining('Header overflow') },
    ],
  ])('that %s', async (_name, answers, posted) => {
    expect(await postToReceiver(answers)).toEqual(posted);
  });

  it.each<[string, RequestListener]>([
    ['never answers', () => setImmediate(() => clock.advance(20_000))],
    [
      'drips',
      (_, response) => {
        response.writeHead(500).write('a');
        setImmediate(() => {
          response.write('b');
          clock.advance(20_000);
        });
      },
    ],
  ])('that %s is cut off', async (_name, answers) => {
    const { error, status } = await postToReceiver(answers);
    expect(error ?? String(status)).toMatch(/no answer within 20 s|answered 500/);
  });

  it('that speaks no HTTP', async () => {
    const port = await listen(createTcpServer((socket) => socket.end('hello\r\n')));
    expect((await postTo(`http://127.0.0.1:${port}/`)).error).toMatch(/Parse Error/);
  });

  it('that is not there', async () => {
    const server = createTcpServer();
    const port = await listen(server);
    await new Promise((resolve) => server.close(resolve));
    expect((await postTo(`http://127.0.0.1:${port}/`)).error).toMatch(/ECONNREFUSED/);
  });

  it('is left when the sender stops', async () => {
    const stopping = new AbortController();
    const port = await listen(createServer(() => stopping.abort()));
    expect((await postTo(`http://127.0.0.1:${port}/`, {}, stopping.signal)).error).toMatch(/abort/);
  });
});

it('uses no connection of other parts of this process', async () => {
  const ports = new Set<number | undefined>();
  const port = await listen(
    createServer(({ socket }, response) => {
      ports.add(socket.remotePort);
      response.end();
    }),
  );
  const url = `http://127.0.0.1:${port}/`;
  const [answer] = await once(request(url).end(), 'response');
  answer.resume();
  await once(answer, 'close');
  expect([await postTo(url), ports.size]).toEqual([{ status: 200 }, 2]);
});

describe('a name', () => {
  const answering = (...answers: readonly string[][]): GuardOptions => {
    let asked = 0;
    const lookup = ((_name: string, _options: unknown, done: (error: null, found: LookupAddress[]) => void) => {
      const addresses = answers[Math.min(asked++, answers.length - 1)] ?? [];
      done(
        null,
        addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
      );
    }) as never; // only this overload is used
    return { lookup };
  };

  it('is looked up once for each message: what was checked is what is connected to', async () => {
    let served = 0;
    const close = { connection: 'close' };
    const port = await listen(createServer((_, response) => response.writeHead(200, close).end(String(++served))));
    const options = answering(['127.0.0.1'], ['169.254.169.254']);
    const post = createPost(new ReceiverGuard(['127.0.0.1/32'], options), clock);
    const { signal } = new AbortController();
    const call = { url: `http://receiver.example:${port}/`, headers: {}, body: '{}', signal };
    expect(await post(call)).toEqual({ status: 200 });
    expect((await post(call)).error).toMatch(/169\.254\.169\.254 is not an address of the open network/);
    expect(served).toBe(1);
  });
});
