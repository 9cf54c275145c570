import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../base/system.ts';
import { type Answer, reply, TestServer } from '../test-server.ts';
import { probeHttp } from './http-probe.ts';
import { probeNode } from './node-probe.ts';
import { ProbeGuard } from './probe-guard.ts';
import { tcpConnect } from './tcp-connect.ts';

const token = 'eyJhbGciOiJSUzI1NiJ9.test';
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-probes-'));
  await writeFile(join(folder, 'token'), `${token}\n`);
});
afterAll(() => rm(folder, { recursive: true }));

let server: TestServer;
let url: string;
beforeEach(async () => {
  server = new TestServer(reply(200));
  url = await server.listen();
});
afterEach(() => server.close());

const { signal } = new AbortController();
const here = { guard: new ProbeGuard(['127.0.0.1/32']), clock: systemClock };
const elsewhere = { guard: new ProbeGuard([]), clock: systemClock };
const often = { ownAddress: undefined, timeoutMs: 5_000, signal };

describe('an HTTP probe', () => {
  it.each<[string, Answer, boolean]>([
    ['200', reply(200, 'secret'), true],
    ['204', reply(204, ''), true],
    ['301', reply(301, '', { location: 'http://169.254.169.254/' }), false],
    ['401', reply(401, 'secret'), false],
    ['503', reply(503, 'secret'), false],
  ])('of an answer with %s', async (status, answer, ready) => {
    server.answer = answer;
    const found = await probeHttp(here, { ...often, url });
    expect(found).toEqual({ ready, message: `${new URL(url).host} answered ${status}` });
    expect(server.asked).toHaveLength(1);
  });

  it('of a status that is asked for', async () => {
    server.answer = reply(401);
    expect(await probeHttp(here, { ...often, url, status: 401 })).toMatchObject({ ready: true });
  });

  it('of a server that hangs up is not ready', async () => {
    server.answer = (_, response) => void response.socket?.destroy();
    const found = await probeHttp(here, { ...often, url });
    expect(found).toEqual({ ready: false, message: expect.stringContaining('hang up') });
  });

  it.each([
    ['http://169.254.169.254/latest', 'not an address of the open network'],
    ['http://[::ffff:7f00:1]/', 'not an address of the open network'],
    ['http://127.1/', 'not an address of the open network'],
    ['http://2130706433/', 'not an address of the open network'],
    ['http://0x7f.1/', 'not an address of the open network'],
    ['http://user@example.test/', 'user name'],
    ['ftp://example.test/', 'only http and https'],
    ['example.test', 'not a URL'],
  ])('of %s fails for good', async (bad, message) => {
    const found = await probeHttp(elsewhere, { ...often, url: bad });
    expect(found).toEqual({ ready: false, message: expect.stringContaining(message), failed: true });
  });

  it('of a name that leads to an address that is refused is not ready', async () => {
    const named = url.replace('127.0.0.1', 'localhost');
    const found = await probeHttp(elsewhere, { ...often, url: named });
    expect(found).toEqual({ ready: false, message: expect.stringContaining('probeAllow') });
    expect(server.asked).toHaveLength(0);
  });
});

describe('a TCP probe', () => {
  const place = (port: number, hostname = '127.0.0.1') => ({ hostname, port, ownAddress: undefined });

  it('connects', async () => {
    const port = Number(new URL(url).port);
    expect(await tcpConnect(here, { ...often, place: place(port) })).toBeUndefined();
    expect(await tcpConnect(elsewhere, { ...often, place: place(port) })).toContain('probeAllow');
    expect(await tcpConnect(elsewhere, { ...often, place: place(port, 'localhost') })).toContain('probeAllow');
  });

  it('says why there is no connection', async () => {
    expect(await tcpConnect(here, { ...often, place: place(1) })).toContain('ECONNREFUSED');
    expect(await tcpConnect(here, { ...often, place: place(1), signal: AbortSignal.abort() })).toBe('it was stopped');
  });
});

describe('a probe of a node', () => {
  const status = (code: number, reason: string, message: string) =>
    reply(code, { kind: 'Status', apiVersion: 'v1', status: 'Failure', message, reason, code });
  const node = {
    kind: 'Node',
    metadata: { name: 'rack1', uid: 'u1' },
    spec: {},
    status: { conditions: [{ type: 'Ready', status: 'True' }] },
  };
  const probe = (name = 'rack1') =>
    probeNode(
      systemClock,
      { url: `${url}/`, tokenFile: join(folder, 'token') },
      { ...often, cluster: 'lab', node: { name } },
    );

  it.each<[string, Answer, object]>([
    ['that is Ready', reply(200, node), { ready: true, message: 'node "rack1" is Ready' }],
    [
      'that is not there yet',
      status(404, 'NotFound', 'nodes "rack1" not found'),
      { ready: false, message: 'node "rack1" has not registered yet' },
    ],
    ['that a proxy does not know', reply(404, '<html>'), { ready: false, message: 'cluster "lab" answered 404' }],
    [
      'with an old token',
      status(401, 'Unauthorized', `Unauthorized ${token}`),
      {
        ready: false,
        message: 'cluster "lab" answered 401: Unauthorized ***; give tokenFile a valid token',
        failed: true,
      },
    ],
    [
      'without rights',
      status(403, 'Forbidden', 'nodes "rack1" is forbidden'),
      { ready: false, message: expect.stringContaining('right to get nodes'), failed: true },
    ],
    [
      'of a busy server',
      status(429, 'TooManyRequests', 'later'),
      { ready: false, message: 'cluster "lab" answered 429: later' },
    ],
    [
      'of a broken server',
      status(500, 'InternalError', 'etcd'),
      { ready: false, message: 'cluster "lab" answered 500: etcd' },
    ],
    [
      'of a server that starts',
      status(503, 'ServiceUnavailable', ''),
      { ready: false, message: expect.stringContaining('503') },
    ],
    [
      'of one that redirects',
      reply(302, '', { location: '/' }),
      { ready: false, message: 'cluster "lab" answered 302' },
    ],
    ['of one that says nonsense', reply(200, '{'), { ready: false, message: expect.stringContaining('a Node') }],
    [
      'of one that hangs up',
      (_, response) => void response.socket?.destroy(),
      { ready: false, message: expect.stringContaining('hang up') },
    ],
  ])('%s', async (_, answer, expected) => {
    server.answer = answer;
    const found = await probe();
    expect(found).toEqual(expected);
    expect(JSON.stringify(found)).not.toContain(token);
    expect(server.asked[0]).toMatchObject({
      what: 'GET /api/v1/nodes/rack1',
      headers: { authorization: `Bearer ${token}` },
    });
  });

  it('without a token tells no path', async () => {
    const config = { url, tokenFile: join(folder, 'missing') };
    const found = await probeNode(systemClock, config, { ...often, cluster: 'lab', node: { name: 'rack1' } });
    const message = 'cluster "lab": kubernetes.lab.tokenFile of the server cannot be used';
    expect(found).toEqual({ ready: false, message });
  });

  it('keeps to the path of nodes', async () => {
    await probe('../secrets?x');
    expect(server.asked[0]?.what).toBe('GET /api/v1/nodes/..%2Fsecrets%3Fx');
  });
});
