// What a machine is told before it becomes a host, with real servers on loopback.

import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { parse } from '../api/parse.ts';
import { silentLogger } from '../base/log.ts';
import { freePort } from '../base/test-ports.ts';
import { version } from '../base/version.ts';
import { checkHost } from './check-host.ts';
import { AgentConfig } from './config.ts';

let place: string;
let url: string;
/** Of the server, against that of this machine. */
let clockOffMs = 0;
const server = createServer((_, response) => {
  response.setHeader('date', new Date(Date.now() + clockOffMs).toUTCString());
  response.end(JSON.stringify({ version: '9.9.9' }));
});
beforeAll(async () => {
  place = await mkdtemp(join(tmpdir(), 'berth-check-'));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  await rm(place, { recursive: true });
});

const check = async (change: Record<string, unknown> = {}): Promise<Record<string, string>> => {
  const dataDirectory = join(place, 'agent');
  const config = { serverUrl: url, hostName: 'host-1', dataDirectory, drivers: ['fake'], ...change };
  const findings = await checkHost(parse(AgentConfig, config), { log: silentLogger });
  return Object.fromEntries(findings.map((each) => [each.check, `${each.result}: ${each.message}`]));
};

it('finds what the agent would find, and leaves nothing behind', async () => {
  const found = await check();
  expect(found).toMatchObject({
    machine: expect.stringMatching(/^ok: \w+, \d+ CPUs, \d+ MiB memory, address /),
    network: 'ok: user',
    'driver fake': expect.stringMatching(/^ok: /),
    [`server ${url}`]: `ok: answers, version 9.9.9 (this program: ${version})`,
    clock: `ok: as that of ${url}`,
  });
  expect(await readdir(place)).toEqual([]);
});

it('says that a clock differs', async () => {
  clockOffMs = 60_000;
  try {
    expect((await check())['clock']).toMatch(/^warning: differs by (59|60|61) s from that of/);
  } finally {
    clockOffMs = 0;
  }
});

it('says why a server does not answer', async () => {
  const closed = `http://127.0.0.1:${await freePort()}`;
  expect((await check({ serverUrl: closed }))[`server ${closed}`]).toMatch(/^failed: .*ECONNREFUSED/);
});

it('does not demand of a server the certificate of a fleet that the machine has not joined', async () => {
  const secure = url.replace('http:', 'https:');
  expect((await check({ serverUrl: secure }))[`server ${secure}`]).toMatch(/^warning: answers; its certificate/);
});

it('says that the data directory cannot be made', async () => {
  const found = await check({ dataDirectory: '/proc/berth/agent' });
  expect(found['data directory']).toMatch(/^failed: \/proc\/berth\/agent cannot be written: /);
});

it('refuses a configuration that no agent starts with', async () => {
  await expect(check({ drivers: ['qemuu'] })).rejects.toThrow(
    'drivers: there is no driver "qemuu"; did you mean "qemu"?',
  );
});
