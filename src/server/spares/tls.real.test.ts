// Calls of provisioners and probes over TLS, with the certificate of an authority of the operator's own.

import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { systemClock } from '../../base/system.ts';
import { TestAuthority } from '../../base/tls/test-authority.ts';
import { probeNode } from './probes/node-probe.ts';

let folder: string;
let server: Server;
let url: string;
let ca: string;
let otherCa: string;
let asked = 0;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-spare-tls-'));
  const authority = new TestAuthority(folder, 'own');
  const { cert, key } = authority.issue('cluster', 'IP:127.0.0.1');
  ca = authority.ca;
  otherCa = new TestAuthority(folder, 'other').ca;
  await writeFile(join(folder, 'token'), 'a-token\n');
  const node = {
    kind: 'Node',
    metadata: { name: 'rack1', uid: 'u1' },
    status: { conditions: [{ type: 'Ready', status: 'True' }] },
  };
  server = createServer({ cert: await readFile(cert), key: await readFile(key) }, (_, response) => {
    asked += 1;
    response.end(JSON.stringify(node));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(async () => {
  server.closeAllConnections();
  await once(server.close(), 'close');
  await rm(folder, { recursive: true });
});

function probe(config: { url?: string; caFile?: string }) {
  const cluster = { url, tokenFile: join(folder, 'token'), ...config };
  const { signal } = new AbortController();
  return probeNode(systemClock, cluster, { cluster: 'lab', node: { name: 'rack1' }, timeoutMs: 10_000, signal });
}

it('trusts the authority that is configured', async () => {
  expect(await probe({ caFile: ca })).toEqual({ ready: true, message: 'node "rack1" is Ready' });
  expect(asked).toBe(1);
});

it.each<[string, () => { url?: string; caFile?: string }, RegExp]>([
  ['without an authority', () => ({}), /certificate/],
  ['of another authority', () => ({ caFile: otherCa }), /certificate/],
  ['of another name', () => ({ caFile: ca, url: url.replace('127.0.0.1', 'localhost') }), /altnames/],
  ['that speaks no TLS', () => ({ caFile: ca, url: 'https://127.0.0.1:1' }), /ECONNREFUSED/],
])('sends nothing to a server %s', async (_, config, message) => {
  const before = asked;
  const found = await probe(config());
  expect(found).toEqual({ ready: false, message: expect.stringMatching(message) });
  expect(asked).toBe(before);
});
