import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestServer } from '../../testing.ts';

let server: Awaited<ReturnType<typeof startTestServer>>;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server.close());

interface Refusal {
  readonly status: number;
  readonly allow: string | undefined;
  readonly code: unknown;
  readonly message: unknown;
}

/** What comes for `said`, until the server or the answer's length ends it. */
async function refusalOf(said: string): Promise<Refusal> {
  const client = connect(Number(new URL(server.url).port), '127.0.0.1');
  client.write(said);
  const all = await text(client);
  const [head = '', body = ''] = all.split('\r\n\r\n');
  expect(head).toMatch(/content-type: application\/json; charset=utf-8/i);
  const { error } = JSON.parse(body);
  const allow = /^allow: (.*)$/im.exec(head)?.[1]?.trim();
  return { status: Number(head.split(' ')[1]), allow, code: error.code, message: error.message };
}

const closing = 'host: x\r\nconnection: close\r\nauthorization: Bearer operator\r\n';
const ask = (line: string, headers = closing): string => `${line} HTTP/1.1\r\n${headers}\r\n`;

describe('every refusal is JSON with a code', () => {
  it.each([
    ['a path with a lone %', ask('GET /%'), 400, 'InvalidRequest', /%25/],
    ['a path with an escape that is no character', ask('GET /%ff'), 400, 'InvalidRequest', /%25/],
    ['the same in a name', ask('GET /v1/instances/%ff'), 400, 'InvalidRequest', /%25/],
    ['the same with a method that is not there', ask('PATCH /v1/instances/%ff'), 400, 'InvalidRequest', /%25/],
    ['a name that is too long', ask(`GET /v1/instances/${'a'.repeat(1000)}`), 400, 'InvalidRequest', /./],
    ['no HTTP', 'hello\r\n\r\n', 400, 'InvalidRequest', /cannot be read as HTTP/],
    ['a method that HTTP does not know', ask('BREW /v1/instances'), 400, 'InvalidRequest', /cannot be read as HTTP/],
    [
      'a length that is no number',
      ask('GET /healthz', `${closing}content-length: long\r\n`),
      400,
      'InvalidRequest',
      /integer/,
    ],
    ['no host', ask('GET /healthz', 'connection: close\r\n'), 400, 'InvalidRequest', /Host/],
    ['an expectation', ask('GET /healthz', `${closing}expect: tea\r\n`), 400, 'InvalidRequest', /tea/],
    [
      'headers that are too large',
      ask('GET /healthz', `x: ${'a'.repeat(100_000)}\r\n`),
      431,
      'HeadersTooLarge',
      /16 KiB/,
    ],
    ['a tunnel', ask('CONNECT example.org:443'), 405, 'MethodNotAllowed', /CONNECT/],
    ['an unknown path', ask('GET /nothing'), 404, 'NotFound', /GET \/nothing/],
  ])('%s', async (_, said, status, code, message) => {
    expect(await refusalOf(said)).toMatchObject({ status, code, message: expect.stringMatching(message) });
  });

  it.each([
    ['PATCH /v1/instances', 'GET, HEAD, POST'],
    ['DELETE /v1/instances/batch', 'GET, HEAD, PUT, DELETE, POST'],
    ['POST /v1/hosts/h1?x=1', 'GET, HEAD, PUT, DELETE'],
    ['OPTIONS /healthz', 'GET, HEAD'],
    ['PROPFIND /v1/hosts', 'GET, HEAD, POST'],
  ])('%s is 405, with what is possible', async (line, allow) => {
    const refusal = await refusalOf(ask(line));
    if (line.startsWith('DELETE'))
      expect(refusal.status).toBe(404); // an instance may bear that name
    else expect(refusal).toMatchObject({ status: 405, code: 'MethodNotAllowed', allow });
  });

  it('keeps an answer whole that has begun when what follows cannot be read', async () => {
    const client = connect(Number(new URL(server.url).port), '127.0.0.1');
    client.write(`GET /v1/hosts?watch=true&revision=0 HTTP/1.1\r\nhost: x\r\nauthorization: Bearer operator\r\n\r\n`);
    let said = '';
    client.on('data', (piece) => (said += piece.toString()));
    await once(client, 'data');
    client.write('no HTTP\r\n\r\n');
    await once(client, 'close');
    expect(said.match(/HTTP\/1\.1/g)).toHaveLength(1);
  });
});

describe('a body over the limit', () => {
  const [mib, limit] = [1024 * 1024, 1024 * 1024];
  it.each([
    ['is refused while it is sent', `content-length: ${20 * mib}\r\n`, (piece: string) => piece],
    ['is refused in chunks, too', 'transfer-encoding: chunked\r\n', (piece: string) => `100000\r\n${piece}\r\n`],
  ])('%s, and its client reads why', async (_, length, framed) => {
    const client = connect(Number(new URL(server.url).port), '127.0.0.1');
    client.write(ask('POST /v1/instances', `${closing}content-type: application/json\r\n${length}`));
    const piece = framed('x'.repeat(mib));
    for (let sent = 0; sent < 20; sent++) if (!client.write(piece)) await once(client, 'drain');
    if (length.startsWith('transfer')) client.write('0\r\n\r\n');
    const all = await text(client);
    expect(all).toMatch(/^HTTP\/1\.1 413 /);
    expect(all).toContain(`over ${limit} bytes`);
  });

  it('of one without a token is thrown away as well', async () => {
    const client = connect(Number(new URL(server.url).port), '127.0.0.1');
    client.write(ask('POST /v1/instances', `host: x\r\nconnection: close\r\ncontent-length: ${4 * mib}\r\n`));
    client.write('x'.repeat(4 * mib));
    expect(await text(client)).toMatch(/^HTTP\/1\.1 401 /);
  });

  it('that has no end closes the connection', async () => {
    const client = connect(Number(new URL(server.url).port), '127.0.0.1').on('error', () => {});
    const closed = once(client, 'close').catch(() => {}); // reset, perhaps
    client.resume();
    client.write(ask('POST /v1/instances', `${closing}content-length: ${1024 * mib}\r\n`));
    const piece = Buffer.alloc(mib);
    while (!client.destroyed) {
      if (!client.write(piece)) await Promise.race([once(client, 'drain').catch(() => {}), closed]);
    }
  });
});
