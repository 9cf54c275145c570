// Sources over real connections that send more than a list, or never end.

import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterEach, describe, expect, it } from 'vitest';
import { createManualClock } from '../../base/manual-clock.ts';
import { systemFetch } from '../../base/system.ts';
import { fetchNodes } from './fetch-nodes.ts';

let server: Server | undefined;
afterEach(() => {
  server?.closeAllConnections();
  server?.close();
});

async function ask(answers: RequestListener, clock = createManualClock()) {
  server = createServer(answers).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/nodes`;
  const [etag, authorization] = ['"1"', 'Bearer open-sesame'];
  return fetchNodes({ fetch: systemFetch, clock }, { url, etag, authorization, signal: new AbortController().signal });
}

const node = { name: 'metal-0', cpu: 8, memory: 1024 };
const zeros = Buffer.alloc(200 * 1024 ** 2, ' ');

describe('a source', () => {
  it('is asked with the ETag and the credentials', async () => {
    const answer = await ask(({ headers }, response) =>
      response.end(JSON.stringify([headers['if-none-match'], headers.authorization])),
    );
    expect(answer).toMatchObject({ kind: 'list', json: ['"1"', 'Bearer open-sesame'] });
  });

  it.each<[string, RequestListener, unknown]>([
    [
      'sends a list that is compressed',
      (_, response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(JSON.stringify([node]))),
      { kind: 'list', json: [node] },
    ],
    [
      'sends 200 MB that are compressed to 200 kB',
      (_, response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(zeros, { level: 1 })),
      { kind: 'failed', why: 'the answer is over 10485760 bytes' },
    ],
    [
      'sends chunks without an end',
      (_, response) => {
        const more = (): void => {
          while (!response.destroyed && response.write(Buffer.alloc(65_536, ' ')));
        };
        response.on('drain', more);
        more();
      },
      { kind: 'failed', why: 'the answer is over 10485760 bytes' },
    ],
    [
      'breaks off',
      (_, response) => {
        response.writeHead(200, { 'content-length': '100' }).write('[');
        response.socket?.destroySoon();
      },
      { kind: 'failed', why: expect.stringMatching(/./) },
    ],
    [
      'sends what is not gzip',
      (_, response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end('[]'),
      { kind: 'failed', why: expect.stringMatching(/header/) },
    ],
    [
      'sends what is not UTF-8',
      (_, response) => response.end(Buffer.from([0x5b, 0xff, 0x5d])),
      { kind: 'failed', why: expect.stringMatching(/./) },
    ],
    [
      'redirects to another',
      (_, response) => response.writeHead(302, { location: 'http://169.254.169.254/' }).end(),
      { kind: 'failed', why: 'it answered 302' },
    ],
  ])('that %s', async (_name, answers, expected) => {
    expect(await ask(answers)).toMatchObject(expected as object); // of the table above
  });

  it('that drips is cut off', async () => {
    const clock = createManualClock();
    const answer = await ask((_, response) => {
      response.writeHead(200).write('[');
      setImmediate(() => clock.advance(10_000));
    }, clock);
    expect(answer).toEqual({ kind: 'failed', why: 'no answer within 10 s' });
  });
});
