import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { parse } from '../../../api/parse.ts';
import { SpareReady } from '../../../api/resources/spare.ts';
import { systemClock } from '../../../base/system.ts';
import type { ProbeAnswer } from '../provisioner.ts';
import { reply, TestServer } from '../test-server.ts';
import { createProbe } from './probe.ts';
import { ProbeGuard } from './probe-guard.ts';

const createdAtMs = Date.parse('2026-11-20T10:00:00Z');
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-probe-'));
  await writeFile(join(folder, 'token'), 'a-token\n');
});
afterAll(() => rm(folder, { recursive: true }));

let server: TestServer;
let port: number;
beforeEach(async () => {
  server = new TestServer(reply(200));
  port = Number(new URL(await server.listen()).port);
});
afterEach(() => server.close());

function ask(
  ready: object,
  { address, allow = ['127.0.0.1/32'] }: { address?: string; allow?: string[] } = {},
): Promise<ProbeAnswer> {
  const clusters = { lab: { url: `http://127.0.0.1:${port}`, tokenFile: join(folder, 'token') } };
  const probe = createProbe({ clusters, guard: new ProbeGuard(allow), clock: systemClock });
  const spare = {
    id: 'spare_1',
    name: 'node 9',
    createdAtMs,
    ...(address === undefined ? {} : { address }),
  };
  return probe(parse(SpareReady, ready), spare, { timeoutMs: 5_000, signal: new AbortController().signal });
}

describe('a spare is ready', () => {
  it('when a URL with its address and name answers', async () => {
    const ready = { http: { url: `http://{address}:${port}/of/{name}?$&` } };
    expect(await ask(ready, { address: '127.0.0.1' })).toMatchObject({ ready: true });
    expect(server.asked[0]?.what).toBe('GET /of/node%209?$&');
  });

  it('when a URL answers with the status that is asked for', async () => {
    server.answer = reply(401);
    expect(await ask({ http: { url: `http://127.0.0.1:${port}/`, status: 401 } })).toMatchObject({ ready: true });
  });

  it('when its port is open', async () => {
    const message = `port ${port} of 127.0.0.1 is open`;
    expect(await ask({ tcp: { port } }, { address: '127.0.0.1' })).toEqual({ ready: true, message });
  });

  it('when its node is Ready and new', async () => {
    const node = (creationTimestamp: string) => ({
      kind: 'Node',
      metadata: { name: 'node 9', uid: 'u', creationTimestamp },
      spec: {},
      status: { conditions: [{ type: 'Ready', status: 'True' }] },
    });
    server.answer = reply(200, node('2026-11-20T10:05:00Z'));
    expect(await ask({ kubernetes: { cluster: 'lab' } })).toMatchObject({ ready: true });
    server.answer = reply(200, node('2026-11-19T10:05:00Z'));
    expect(await ask({ kubernetes: { cluster: 'lab' } })).toMatchObject({ ready: false });
    expect(server.asked[0]?.what).toBe('GET /api/v1/nodes/node%209');
  });

  it('when nothing is asked', async () => {
    expect(await ask({})).toMatchObject({ ready: true });
  });
});

it('is not ready yet when its port is closed', async () => {
  const answer = await ask({ tcp: { port: 1 } }, { address: '127.0.0.1' });
  expect(answer).toEqual({
    ready: false,
    message: expect.stringContaining('port 1 of 127.0.0.1: connect ECONNREFUSED'),
  });
});

it.each<[string, object, object, string]>([
  ['without an address for its URL', { http: { url: 'http://{address}/' } }, {}, 'has no address'],
  ['without an address for its port', { tcp: { port: 22 } }, {}, 'ready.tcp.address'],
  ['with the address of another', { tcp: { port: 22, address: '10.0.0.2' } }, { address: '10.0.0.1' }, 'probeAllow'],
  ['with loopback as its address', { tcp: { port: 22 } }, { address: '127.0.0.1', allow: [] }, 'probeAllow'],
  ['with a cluster that is not configured', { kubernetes: { cluster: 'prod' } }, {}, 'no server has a cluster "prod"'],
  ['with a cluster of a strange name', { kubernetes: { cluster: 'constructor' } }, {}, 'no server has a cluster'],
  ['with a URL in its address', { http: { url: 'http://{address}/' } }, { address: 'a@169.254.169.254' }, 'user name'],
])('can never be ready %s', async (_, ready, options, message) => {
  expect(await ask(ready, options)).toEqual({ ready: false, failed: true, message: expect.stringContaining(message) });
});
