// `berth upgrade check`, against a server and against the store of a stopped one.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { runBerth } from '../../../test/processes.ts';
import { silentLogger } from '../../base/log.ts';
import { version } from '../../base/version.ts';
import { parse } from '../../api/parse.ts';
import { createClient } from '../../api/client/client.ts';
import { ServerConfig } from '../../server/config.ts';
import { type RunningServer, startServer } from '../../server/run.ts';
import { testRegistration } from '../../server/testing.ts';
import { openStore } from '../../store/open.ts';

let directory: string;
let server: RunningServer;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-upgrade-'));
  const config = parse(ServerConfig, {
    listen: '127.0.0.1:0',
    dataDirectory: directory,
    advertiseUrl: 'http://127.0.0.1:1',
  });
  server = await startServer(config, { log: silentLogger });
});
afterEach(async () => {
  await server.close();
  await rm(directory, { recursive: true });
});

const berth = (words: string) =>
  runBerth(words.split(' '), { BERTH_URL: server.url, BERTH_TOKEN: server.operatorToken, NO_COLOR: '1' });

async function register(host: string, agentVersion: string): Promise<void> {
  const client = createClient({ fetch, url: server.url, token: server.hostToken(host) });
  await client.agent(host).register(testRegistration({ agentVersion, machineId: host }));
}

it('finds nothing in a fleet of one version, and knows its servers', async () => {
  await register('h1', version);
  const { stdout, stderr, code } = await berth('upgrade check');
  expect([stderr, stdout, code]).toEqual([
    '',
    `nothing blocks an upgrade to ${version}: 1 server (1 of ${version}); 1 agent (1 of ${version})\n`,
    0,
  ]);
});

it('shows the servers, and which of them leads', async () => {
  const { stdout, code } = await berth('server ls');
  const [, row] = stdout.split('\n');
  expect([code, row]).toEqual([0, expect.stringMatching(/^\S+@\S+ +http:\/\/127\.0\.0\.1:1 +\d\S+ +yes +\d/)]);
});

it('says what is wrong with a store whose servers are stopped', async () => {
  await register('h1', version);
  await register('h2', 'of-a-developer');
  await server.close();
  const url = `sqlite:${join(directory, 'berth.db')}`;
  expect(await berth(`upgrade check --store ${url}`)).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('note    VersionUnknown: the agent of host "h2" has version of-a-developer'),
  });
  const store = await openStore(url);
  await store.commit([], [{ key: 'hosts/torn', value: Buffer.from('{"kind":"host","sch') }]);
  await store.close();
  const { stdout, stderr, code } = await berth(`upgrade check --store ${url} -o json`);
  expect([stderr, code]).toEqual(['berth: one finding blocks the upgrade\n', 7]);
  expect(JSON.parse(stdout)).toMatchObject({
    target: { version },
    findings: [{ level: 'blocks', code: 'RecordUnreadable', message: expect.stringContaining('hosts/torn') }, {}],
  });
});

it('takes a newer agent with a warning, and ignores what it does not know of it', async () => {
  const newer = version.replace(/^(\d+)\.(\d+)/, (_, major, minor) => `${major}.${Number(minor) + 1}`);
  const client = createClient({ fetch, url: server.url, token: server.hostToken('h1') });
  const registration = { ...testRegistration({ agentVersion: newer }), field: 'of the next version' };
  const { epoch } = await client.agent('h1').register(registration);
  await client.agent('h1').heartbeat({ epoch, ...{ mood: 'of the next version' } });
  const { stdout, code } = await berth('upgrade check');
  expect([code, stdout]).toEqual([0, expect.stringContaining('note    AgentIsNewer: the agent of host "h1"')]);
  expect((await berth('events h1')).stdout).toContain('AgentIsNewer');
});

it('refuses the agent of a version that does not work with the server', async () => {
  await expect(register('h1', '99.0.0')).rejects.toMatchObject({
    code: 'InvalidRequest',
    field: 'agentVersion',
    message: expect.stringContaining('upgrade the servers first'),
  });
});
