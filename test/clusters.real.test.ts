// Follows docs/clusters.md: the example's script, server configuration and hook, for two clusters that do not reach each other.

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { parse as parseYaml } from 'yaml';
import { createClient } from '../src/api/client/client.ts';
import { parse } from '../src/api/parse.ts';
import { silentLogger } from '../src/base/log.ts';
import { ServerConfig } from '../src/server/config.ts';
import { type RunningServer, startServer } from '../src/server/run.ts';
import { testRegistration } from '../src/server/testing.ts';
import { berthAt } from './recipe-cli.ts';

const project = join(import.meta.dirname, '..');
const example = join(project, 'examples/clusters');
let directory: string;
let maker: ChildProcess;
let server: RunningServer;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-clusters-'));
  maker = spawn(process.execPath, [join(example, 'node-maker.mjs'), '0'], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, NODE_MAKER_TOKEN: 'secret' },
  });
  const [said]: [Buffer] = (await once(maker.stdout ?? maker, 'data')) as [Buffer]; // its first line
  const port = /listens on (\d+)/.exec(said.toString())?.[1] ?? '';
  const authorization = join(directory, 'node-maker.authorization');
  await writeFile(authorization, 'Bearer secret\n', { mode: 0o600 });
  const text = (await readFile(join(example, 'server.yaml'), 'utf8'))
    .replaceAll(':7080/', `:${port}/`)
    .replace('/etc/berth/node-maker.authorization', authorization);
  const config = parse(ServerConfig, {
    ...parseYaml(text),
    listen: '127.0.0.1:0',
    dataDirectory: join(directory, 'server'),
    offlineAfterMs: 3_600_000, // its hosts are registrations without agents
  });
  server = await startServer(config, { log: silentLogger });
  for (const host of ['build-1', 'build-2']) {
    const agent = createClient({ fetch, url: server.url, token: server.hostToken(host) }).agent(host);
    await agent.register(
      testRegistration({ machineId: host, capacity: { VCPU: 32, MEMORY_MB: 65_536, DISK_GB: 100 } }),
    );
  }
  await promisify(execFile)(join(example, 'set-up.sh'), {
    env: {
      ...process.env,
      BERTH: `${process.execPath} ${join(project, 'src/main.ts')}`,
      OUT: directory,
      BERTH_URL: server.url,
      BERTH_TOKEN: server.operatorToken,
    },
  });
}, 120_000);
afterAll(async () => {
  await server?.close();
  maker.kill();
  await rm(directory, { recursive: true });
});

async function berth(cluster: string, line: string) {
  const token = (await readFile(join(directory, `${cluster}.token`), 'utf8')).trim();
  return berthAt({ url: server.url, token }, line.split(' '));
}

it('gives each cluster nodes of its own pool, as docs/clusters.md says', async () => {
  const page = await readFile(join(project, 'docs/clusters.md'), 'utf8');
  const [, block = ''] = /```console\n([\s\S]*?)```/.exec(page) ?? [];
  const [prepare = '', list = '', release = ''] = block
    .trim()
    .split('\n')
    .map((line) => line.replace('$ berth ', ''));
  const made = await berth('blue', prepare);
  expect(made).toMatchObject({ exitCode: 0 });
  expect(made.stdout).toContain('node-a is ready on build-1');
  expect((await berth('blue', list)).stdout).toContain('node-a');
  expect(await berth('blue', release)).toMatchObject({ exitCode: 0 });
}, 60_000);

it.each([
  ['the project of the other', 'spare ls --project green', 4],
  [
    'the pool of the other',
    'spare prepare --project blue --provisioner nodes --pool green --cpus 1 --memory 1GiB --for 1h',
    2,
  ],
  [
    'more than its quota',
    'spare prepare --project blue --provisioner nodes --pool blue --cpus 65 --memory 1GiB --for 1h',
    5,
  ],
])('refuses a cluster %s', async (_what, line, code) => {
  const { exitCode, stderr } = await berth('blue', line);
  expect([exitCode, stderr]).toEqual([code, expect.stringContaining('berth: cannot')]);
});
