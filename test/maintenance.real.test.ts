// The maintenance of two hosts, with server and agents as processes and the fake driver. The maintenance command of each host writes another
// boot id into the file that its agent reads in place of the kernel's; the test starts the agent again, as the boot of a machine does.

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { hostTokenOf } from '../src/server/http/tokens.ts';
import { type BerthProcess, type Fleet, runBerth, startBerth, startFleet } from './processes.ts';

let directory: string;
let fleet: Fleet;
let other: BerthProcess;
let config: string;

const bootIdFile = (host: string): string => join(directory, `${host}.boot`);
const maintenanceOf = (host: string) => ({
  bootIdFile: bootIdFile(host),
  maintenanceCommand: ['/bin/sh', '-c', 'echo again >>"$0"', bootIdFile(host)],
});
const startOther = () => startBerth(['agent', '--config', config], /registered/);

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-roll-'));
  for (const host of ['h1', 'h2']) await writeFile(bootIdFile(host), 'first\n');
  fleet = await startFleet(join(directory, 'fleet'), { drivers: ['fake'], agent: maintenanceOf('h1') });
  const secret = Buffer.from((await readFile(join(fleet.serverDirectory, 'secret'), 'utf8')).trim(), 'base64url');
  config = join(directory, 'h2.yaml');
  const settings = {
    ...{ serverUrl: fleet.url, token: hostTokenOf(secret, 'h2', 0), hostName: 'h2', drivers: ['fake'] },
    ...{ dataDirectory: join(directory, 'h2'), machineId: '2'.repeat(32), ...maintenanceOf('h2') },
  };
  await writeFile(config, JSON.stringify(settings), { mode: 0o600 });
  other = await startOther();
  await fleet.client.create('image', {
    metadata: { name: 'tiny' },
    spec: { source: 'file:///tiny.qcow2', backend: 'fake', defaults: { cpus: 1, memoryMiB: 64, diskGiB: 1 } },
  });
}, 60_000);
afterAll(async () => {
  await fleet.removeAll();
  await fleet.stop();
  await other.stop();
  await rm(directory, { recursive: true, force: true });
});

async function berth(...words: string[]): Promise<string> {
  const { stdout, stderr, code } = await runBerth(words, fleet.environment);
  expect(code, `${stderr}${stdout}`).toBe(0);
  return stdout;
}

/** Until the agent has said that its command has ended. */
async function maintained(host: string): Promise<void> {
  const { items, revision } = await fleet.client.list('host');
  const isOver = (found: (typeof items)[number]): boolean =>
    found.metadata.name === host && found.status.maintenance?.state === 'finished';
  if (items.some(isOver)) return;
  for await (const change of fleet.client.watch('host', { revision }, AbortSignal.timeout(60_000)))
    if (change.type === 'put' && isOver(change.resource)) return;
  throw new Error(`the maintenance of ${host} has not ended`);
}

it('empties, reboots and refills one host after another, and runs each command once', async () => {
  await berth('run', 'tiny', '--name', 'db', '--wait');
  const home = (await fleet.client.get('instance', 'db')).status.host;
  const plan = await berth('host', 'roll', 'h1', 'h2');
  expect(plan).toContain('by its agent');
  const [, hash = ''] = /--apply (\w+)/.exec(plan) ?? [];
  await berth('host', 'roll', 'h1', 'h2', '--apply', hash);
  await maintained('h2'); // the control plane runs on the machine of h1, which is therefore last
  expect((await fleet.client.get('instance', 'db')).status.host).toBe('h1');
  await other.kill();
  other = await startOther();
  await maintained('h1');
  expect((await fleet.client.get('instance', 'db')).status.host).toBe('h2');
  await fleet.restartServer();
  await fleet.restartAgent();
  expect(await berth('host', 'roll', '--watch')).toContain('Done, 2 of 2 hosts done');
  expect((await fleet.client.get('instance', 'db')).status.host).toBe(home);
  for (const host of ['h1', 'h2']) expect(await readFile(bootIdFile(host), 'utf8')).toBe('first\nagain\n');
}, 120_000);
