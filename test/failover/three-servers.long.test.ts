// Three servers on one store, real processes that are killed in turn: no host is lost, no instance fails, and commands go on. The agent
// and the commands are given the first server only; the others they learn.

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { freePort } from '../../src/base/test-ports.ts';
import { createClient } from '../../src/api/client/client.ts';
import { Servers } from '../../src/api/client/servers.ts';
import { hostTokenOf } from '../../src/server/http/tokens.ts';
import { startEtcd } from '../../src/store/etcd/test-etcd.ts';
import { expectConsistent } from '../consistent.ts';
import { type BerthProcess, runBerth, startBerth } from '../processes.ts';
import { runningCommand } from '../running-command.ts';

const names = ['cp1', 'cp2', 'cp3'];

let directory: string;
let etcd: Awaited<ReturnType<typeof startEtcd>>;
let store: string;
let urls: string[];
const servers = new Map<string, BerthProcess>();
let agent: BerthProcess;
let environment: Record<string, string>;

async function startServer(name: string): Promise<void> {
  const url = urls[names.indexOf(name)] ?? '';
  const flags = [
    ...['--store', store],
    ...['--listen', new URL(url).host],
    ...['--advertise-url', url],
    ...['--data-dir', join(directory, name)],
  ];
  const limits = {
    BERTH_SERVER_HEARTBEAT_MS: '500',
    BERTH_SERVER_OFFLINE_AFTER_MS: '20000',
    BERTH_SERVER_LEADER_LEASE_MS: '2000',
  };
  servers.set(name, await startBerth(['server', ...flags], /listens on/, limits));
}

const startAgent = async (): Promise<BerthProcess> =>
  startBerth(['agent', '--config', join(directory, 'agent.yaml')], /registered/);

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-three-'));
  etcd = await startEtcd({ size: 1 });
  store = `etcd:${etcd.rest()}`;
  urls = [];
  for (const _ of names) urls.push(`http://127.0.0.1:${await freePort()}`);
  const [first = '', ...others] = names;
  await startServer(first); // it makes the admin token
  await Promise.all(others.map(startServer));
  const read = async (file: string): Promise<string> => (await readFile(join(directory, 'cp1', file), 'utf8')).trim();
  const agentConfig = {
    serverUrl: urls[0],
    token: hostTokenOf(Buffer.from(await read('secret'), 'base64url'), 'h1', 0),
    hostName: 'h1',
    dataDirectory: join(directory, 'agent'),
    drivers: ['fake'],
    capacity: { VCPU: 16, MEMORY_MB: 16_384, DISK_GB: 100 },
  };
  await writeFile(join(directory, 'agent.yaml'), JSON.stringify(agentConfig), { mode: 0o600 });
  environment = {
    BERTH_URL: urls[0] ?? '',
    BERTH_TOKEN: await read('operator.token'),
    BERTH_CONFIG: join(directory, 'config', 'contexts.yaml'),
  };
  agent = await startAgent();
});

afterAll(async () => {
  await Promise.allSettled([agent?.kill(), ...[...servers.values()].map((server) => server.kill())]);
  await etcd?.stop();
  await rm(directory, { recursive: true, force: true });
});

async function berth(line: string): Promise<string> {
  const done = await runBerth(line.split(' '), environment);
  expect(done, `berth ${line}`).toMatchObject({ code: 0 });
  return done.stdout;
}

it('go on when each of them is killed in turn', { timeout: 240_000 }, async () => {
  await berth('image add tiny --source file:///tiny.img --format raw --cpus 1 --memory 64MiB');
  await berth('run tiny --name kept --wait');
  const watch = runningCommand(environment, ['ps', '--watch', '-o', 'name']);
  const console = runningCommand(environment, ['logs', '-f', 'kept']);
  try {
    await Promise.all([watch.until(/kept/), console.until(/ready/)]);
    for (const name of names) {
      await servers.get(name)?.kill();
      if (name === 'cp1') {
        // The only server of its configuration is away.
        await agent.kill();
        agent = await startAgent();
      }
      // Placed by a server, told to the agent, reported by it, and seen by the commands: each over one that is left.
      await berth(`run tiny --name after-${name} --wait`);
      await watch.until(new RegExp(`after-${name}\n`));
      expect(await berth(`logs after-${name}`)).toContain('ready');
      await startServer(name);
    }
    expect(console.child.exitCode).toBeNull();
  } finally {
    watch.child.kill();
    console.child.kill();
  }

  const client = createClient({
    fetch: (address, init) => fetch(address, init),
    url: new Servers({ urls }),
    token: environment['BERTH_TOKEN'] ?? '',
  });
  const host = await client.get('host', 'h1');
  expect(host.status.conditions.find(({ type }) => type === 'Ready')).toMatchObject({ status: 'True' });
  const { items: instances } = await client.list('instance');
  expect(instances.map(({ metadata }) => metadata.name).sort()).toEqual([
    ...names.map((name) => `after-${name}`),
    'kept',
  ]);
  for (const { status } of instances) expect(status).toMatchObject({ phase: 'Running', incarnation: 1 });
  const { items: events } = await client.list('event');
  const reasons = events.map(({ spec }) => spec.reason);
  expect(reasons.filter((reason) => /Lost|Offline|Failed|Unreachable|NotReady/.test(reason))).toEqual([]);
  await expectConsistent(client);
});
