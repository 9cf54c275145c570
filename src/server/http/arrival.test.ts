import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, describe, expect, it } from 'vitest';
import { parse } from '../../api/parse.ts';
import { createManualClock } from '../../base/manual-clock.ts';
import { LimitsConfig } from '../limits/limits-config.ts';
import { RequestLimits } from '../limits/request-limits.ts';
import { startTestServer, testRegistration } from '../testing.ts';

const ended: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ended.splice(0).reverse()) await end();
});

/** A server that counts the addresses of this machine like others; time passes only for its limits. */
async function limitedServer(config: Partial<LimitsConfig> = {}) {
  const clock = createManualClock();
  const limits = new RequestLimits(parse(LimitsConfig, config), { clock, addressOf: (address) => address });
  const server = await startTestServer({ requestLimits: limits });
  ended.push(() => server.close());
  const port = Number(new URL(server.url).port);
  return {
    ...server,
    clock,
    port,
    async ask(path: string, from: { readonly address?: string; readonly token?: string } = {}) {
      const { address = '127.0.0.1', token } = from;
      const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
      const asked = httpRequest({ port, path, headers, localAddress: address, agent: false }).end();
      const [response] = (await once(asked, 'response')) as [IncomingMessage];
      const body = await text(response);
      return { status: response.statusCode, retryAfter: response.headers['retry-after'], body };
    },
  };
}

/** Everything that the server answers to `said` until it closes the connection. */
async function answerTo(port: number, said: string): Promise<string> {
  const client = connect(port, '127.0.0.1').on('error', () => {});
  ended.push(() => client.destroy());
  client.write(said);
  return text(client);
}

describe('a flood', () => {
  it('from one address is refused, and leaves others served', async () => {
    const { ask, client } = await limitedServer({ addressRequestsPerSecond: 1, addressBurst: 5 });
    const flood = await Promise.all(Array.from({ length: 20 }, () => ask('/healthz', { address: '127.0.0.2' })));
    expect(flood.filter(({ status }) => status === 200)).toHaveLength(5);
    const refused = flood.filter(({ status }) => status === 429);
    expect(refused).toHaveLength(15);
    expect(refused[0]).toMatchObject({ retryAfter: '1', body: expect.stringContaining('"TooManyRequests"') });
    expect(await ask('/healthz', { address: '127.0.0.3' })).toMatchObject({ status: 200 });
    // Who shows a token is not counted with strangers behind the same address.
    expect(await ask('/v1/hosts', { address: '127.0.0.2', token: 'operator' })).toMatchObject({ status: 200 });
    expect((await client.list('host')).items).toEqual([]);
  });

  it('of one host leaves other hosts behind the same address served', async () => {
    const { ask } = await limitedServer({ hostRequestsPerSecond: 1, hostBurst: 3 });
    const path = (host: string): string => `/v1/hosts/${host}/assignments?epoch=1`;
    const statuses = async (host: string, count: number) => {
      const all = await Promise.all(Array.from({ length: count }, () => ask(path(host), { token: `host:${host}` })));
      return all.filter(({ status }) => status === 429).length;
    };
    expect(await statuses('loud', 10)).toBe(7);
    expect(await statuses('quiet', 3)).toBe(0);
  });

  it('of invalid tokens is answered late, and delays nobody who has a valid one', async () => {
    const { ask, clock } = await limitedServer({ failedLoginsPerMinute: 2 });
    const wrong = () => ask('/v1/hosts', { token: 'wrong' });
    expect([(await wrong()).status, (await wrong()).status]).toEqual([401, 401]);
    let answered = 0;
    const late = [wrong(), wrong()].map(async (answer) => {
      await answer;
      answered += 1;
      return answer;
    });
    for (let i = 0; i < 5; i++) expect((await ask('/v1/hosts', { token: 'operator' })).status).toBe(200);
    expect(answered).toBe(0);
    while (answered < 2) {
      clock.advance(5_000);
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect((await Promise.all(late)).map(({ status }) => status)).toEqual([401, 401]);
  });

  it('of invalid tokens holds no more than a few answers', async () => {
    const { ask } = await limitedServer({ failedLoginsPerMinute: 1 });
    await ask('/v1/hosts', { token: 'wrong' });
    const refused = Promise.withResolvers<number | undefined>();
    for (let i = 0; i < 40; i++)
      void ask('/v1/hosts', { token: 'wrong' }).then(
        ({ status }) => refused.resolve(status),
        () => {}, // closed with the server
      );
    expect(await refused.promise).toBe(429);
  });
});

describe('what stays open', () => {
  it('is limited for each host: connections', async () => {
    const { port, agentClient, client } = await limitedServer({ hostConnections: 1 });
    await client.create('host', { metadata: { name: 'h1' }, spec: {} });
    const ask = (socket: Socket): void => void socket.write(request('GET', '/v1/hosts/h1/nothing', 'host:h1'));
    const first = connect(port, '127.0.0.1');
    ended.push(() => first.destroy());
    ask(first);
    await once(first, 'data');
    const second = connect(port, '127.0.0.1');
    ask(second);
    expect(await text(second.setEncoding('utf8').once('data', () => second.end()))).toMatch(/^HTTP\/1\.1 429 /);
    const gone = once(first, 'close');
    first.destroy();
    await gone;
    await expect(agentClient('h1').register(testRegistration())).resolves.toMatchObject({ epoch: 1 });
  });

  it('is limited for each host: watches', async () => {
    const { port, agentClient, client } = await limitedServer({ hostWatches: 1 });
    await client.create('host', { metadata: { name: 'h1' }, spec: {} });
    const { epoch } = await agentClient('h1').register(testRegistration());
    const said = request('GET', `/v1/hosts/h1/assignments?epoch=${epoch}`, 'host:h1');
    const first = connect(port, '127.0.0.1');
    ended.push(() => first.destroy());
    first.write(said);
    expect(String((await once(first, 'data'))[0])).toMatch(/^HTTP\/1\.1 200 /);
    const second = connect(port, '127.0.0.1');
    ended.push(() => second.destroy());
    second.write(said);
    expect(String((await once(second, 'data'))[0])).toMatch(/^HTTP\/1\.1 429 [^]*1 watches are open/);
  });
});

function request(method: string, path: string, token: string, more = ''): string {
  return `${method} ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token}\r\n${more}\r\n`;
}

describe('a request that two servers could read differently', () => {
  const json = 'content-type: application/json\r\n';
  const smuggled = 'GET /v1/hosts HTTP/1.1\r\nhost: x\r\nauthorization: Bearer operator\r\n\r\n';
  const head = (headers: string): string => `POST /v1/pools HTTP/1.1\r\n${headers}\r\n`;
  const mine = 'host: x\r\nauthorization: Bearer operator\r\n';

  it.each([
    ['a length and chunks', `${head(`${mine}${json}content-length: 5\r\ntransfer-encoding: chunked\r\n`)}0\r\n\r\n`],
    ['chunks and a length', `${head(`${mine}${json}transfer-encoding: chunked\r\ncontent-length: 5\r\n`)}0\r\n\r\n`],
    ['two lengths', `${head(`${mine}${json}content-length: 2\r\ncontent-length: 70\r\n`)}{}`],
    ['a list of lengths', `${head(`${mine}${json}content-length: 2, 70\r\n`)}{}`],
    ['a length with a sign', `${head(`${mine}${json}content-length: +2\r\n`)}{}`],
    ['chunks by another name', `${head(`${mine}${json}transfer-encoding: xchunked\r\n`)}0\r\n\r\n`],
    ['chunks that are not the last encoding', `${head(`${mine}${json}transfer-encoding: chunked, gzip\r\n`)}0\r\n\r\n`],
    ['a space before the colon', `${head(`${mine}${json}transfer-encoding : chunked\r\n`)}0\r\n\r\n`],
    ['a folded header', head(`${mine}x: a\r\n b\r\n`)],
    ['line ends without a carriage return', `POST /v1/pools HTTP/1.1\nhost: x\nauthorization: Bearer operator\n\n`],
    ['one such line end among others', head(`${mine}x: a\ntransfer-encoding: chunked\r\n`)],
    ['a carriage return alone', head(`${mine}x: a\rtransfer-encoding: chunked\r\n`)],
    ['a NUL in a header', head(`${mine}x: a\0b\r\n`)],
    ['a chunk size that is none', `${head(`${mine}${json}transfer-encoding: chunked\r\n`)}0x5\r\nhello\r\n0\r\n\r\n`],
    ['a chunk with a bare line end', `${head(`${mine}${json}transfer-encoding: chunked\r\n`)}2\n{}\n0\n\n`],
    ['two tokens', head(`${mine}authorization: Bearer host:h1\r\nconnection: close\r\n`)],
    ['two tokens, the second in capitals', head(`${mine}AUTHORIZATION: Bearer operator\r\nconnection: close\r\n`)],
    ['two hosts', head(`${mine}Host: y\r\nconnection: close\r\n`)],
  ])('is refused: %s', async (_, said) => {
    const { port } = await limitedServer();
    const answer = await answerTo(port, said + smuggled);
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(answer.match(/^HTTP\/1\.1 /gm)).toHaveLength(1);
  });
});

describe('a token in the query', () => {
  it.each(['token', 'access_token', 'api_key', 'x=1&token'])(
    'is not read, and its sender learns why: %s',
    async (name) => {
      const { ask } = await limitedServer();
      const answer = await ask(`/v1/hosts?${name}=operator`);
      expect(answer).toMatchObject({ status: 401, body: expect.stringContaining('Authorization: Bearer') });
      expect(answer.body).not.toContain('operator');
      expect(await ask(`/v1/hosts?${name}=operator`, { token: 'operator' })).toMatchObject({ status: 400 });
    },
  );
});

it('a request that comes too slowly is refused', async () => {
  const server = await startTestServer({ slowMsMax: 100 });
  ended.push(() => server.close());
  const client = connect(Number(new URL(server.url).port), '127.0.0.1');
  ended.push(() => client.destroy());
  client.write('GET /healthz HTTP/1.1\r\nhost: ');
  expect(await text(client)).toMatch(/^HTTP\/1\.1 408 [^]*"RequestTimeout"/);
});
