import { once } from 'node:events';
import { createServer, get, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, describe, expect, it } from 'vitest';
import { sinkOf } from './response-sink.ts';

const ended: (() => void)[] = [];
afterEach(() => {
  for (const end of ended.splice(0)) end();
});

/** Answers each request with what `tell` says. */
async function serve(tell: (response: ServerResponse, path: string) => Promise<void>): Promise<number> {
  const server = createServer((request, response) => {
    response.writeHead(200, { 'content-type': 'text/plain' });
    response.flushHeaders();
    void tell(response, request.url ?? '').then(() => response.end());
  }).listen(0, '127.0.0.1');
  ended.push(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

const bytes = (said: string): Uint8Array => new TextEncoder().encode(said);

/** What comes on a connection on which `said` was sent, until it ends. */
async function over(port: number, said: string): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  socket.write(said);
  return text(socket);
}

describe('a sink of an answer', () => {
  it('tells each piece as a chunk of its own, also one that others were told', async () => {
    const same = bytes('für alle\n');
    const port = await serve(async (response, path) => {
      const sink = sinkOf(response);
      sink.take(same);
      sink.take(bytes(`for ${path}\n`));
      sink.take(same);
    });
    const [one, two] = await Promise.all(
      ['/one', '/two'].map(async (path) => {
        const [answer] = (await once(get({ port, path }), 'response')) as [IncomingMessage];
        return text(answer);
      }),
    );
    expect(one).toBe('für alle\nfor /one\nfür alle\n');
    expect(two).toBe('für alle\nfor /two\nfür alle\n');
    const whole = await over(port, 'GET /x HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n');
    expect(whole).toMatch(/\r\n\r\na\r\nfür alle\n\r\n7\r\nfor \/x\n\r\na\r\nfür alle\n\r\n0\r\n\r\n$/);
  });

  it('does not end with a piece of nothing', async () => {
    const port = await serve(async (response) => {
      const sink = sinkOf(response);
      expect(sink.take(bytes(''))).toBe(true);
      sink.take(bytes('more'));
    });
    const [answer] = (await once(get({ port }), 'response')) as [IncomingMessage];
    expect(await text(answer)).toBe('more');
  });

  it('keeps its place behind the answers before it', async () => {
    const first = Promise.withResolvers<void>();
    const port = await serve(async (response, path) => {
      const sink = sinkOf(response);
      if (path === '/second') {
        sink.take(bytes('second'));
        return first.resolve();
      }
      await first.promise;
      sink.take(bytes('first'));
    });
    const request = (path: string, more = '') => `GET ${path} HTTP/1.1\r\nhost: x\r\n${more}\r\n`;
    const all = await over(port, request('/first') + request('/second', 'connection: close\r\n'));
    expect(all).toMatch(/5\r\nfirst\r\n0\r\n\r\nHTTP[^]*6\r\nsecond\r\n0\r\n\r\n$/);
  });

  it('makes no chunks for those who do not know them', async () => {
    const port = await serve(async (response) => {
      sinkOf(response).take(bytes('as it is'));
    });
    expect(await over(port, 'GET / HTTP/1.0\r\n\r\n')).toMatch(/\r\n\r\nas it is$/);
  });

  it('says when it is full, and when it is not any more', async () => {
    const piece = new Uint8Array(256 * 1024).fill(97);
    let full = 0;
    const port = await serve(async (response) => {
      const sink = sinkOf(response);
      for (let i = 0; i < 64; i++) {
        if (sink.take(piece)) continue;
        full += 1;
        await sink.ready();
      }
    });
    const [answer] = (await once(get({ port }), 'response')) as [IncomingMessage];
    expect((await text(answer)).length).toBe(64 * piece.byteLength);
    expect(full).toBeGreaterThan(0);
  });

  it('wants nothing more when its reader has gone', async () => {
    const taken = Promise.withResolvers<readonly [boolean, void]>();
    const port = await serve(async (response) => {
      const sink = sinkOf(response);
      await once(response, 'close');
      taken.resolve([sink.take(bytes('nobody hears this')), await sink.ready()]);
    });
    const request = get({ port });
    await once(request, 'response');
    request.destroy();
    expect((await taken.promise)[0]).toBe(true);
  });
});
