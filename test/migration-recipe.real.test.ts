// Follows the recipe of docs/migration.md, then drains the target: a server, two agents with the fake driver and the command line, all as
// processes.

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { hostTokenOf } from '../src/server/http/tokens.ts';
import { type BerthProcess, type Fleet, runBerth, startBerth, startFleet } from './processes.ts';

const escaped = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');

let directory: string;
let fleet: Fleet;
let other: BerthProcess;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-migration-recipe-'));
  fleet = await startFleet(join(directory, 'fleet'), { drivers: ['fake'], agent: { moveAddress: 'off' } });
  await fleet.client.create('image', {
    metadata: { name: 'tiny' },
    spec: { source: 'file:///tiny.qcow2', backend: 'fake', defaults: { cpus: 1, memoryMiB: 64, diskGiB: 1 } },
  });
  await berth('volume', 'create', 'data', '--size', '2GiB');
  await berth('run', 'tiny', '--name', 'db', '-v', 'data', '--wait', '-t', '60s'); // while there is one host
  const secret = Buffer.from((await readFile(join(fleet.serverDirectory, 'secret'), 'utf8')).trim(), 'base64url');
  const config = join(directory, 'h2.yaml');
  const token = hostTokenOf(secret, 'h2', 0);
  const settings = {
    serverUrl: fleet.url,
    token,
    hostName: 'h2',
    machineId: '2'.repeat(32), // another machine
    dataDirectory: join(directory, 'h2'),
    drivers: ['fake'],
    moveAddress: 'off',
  };
  await writeFile(config, JSON.stringify(settings), { mode: 0o600 });
  other = await startBerth(['agent', '--config', config], /registered/);
}, 120_000);
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

it('goes as the document says; a drain moves it back', async () => {
  const document = await readFile(join(import.meta.dirname, '../docs/migration.md'), 'utf8');
  const commands = [...document.matchAll(/```console\n([\s\S]*?)```/g)].flatMap(([, block = '']) =>
    block.split(/^\$ berth /m).slice(1),
  );
  expect(commands).toHaveLength(2);
  let hash = '';
  for (const command of commands) {
    const [words = '', ...lines] = command.trimEnd().split('\n');
    const stdout = await berth(...words.replace('HASH', hash).split(' '));
    const pattern = lines.map((line) => line.split('...').map(escaped).join('[^]*')).join('\n');
    expect(stdout.trimEnd()).toMatch(new RegExp(`^${pattern}$`));
    hash = /--apply (\w+)/.exec(stdout)?.[1] ?? hash;
  }
  expect((await fleet.client.get('volume', 'data')).status.host).toBe('h2');

  const plan = await berth('host', 'drain', 'h2');
  expect(plan).toMatch(/db +moved cold +h1/);
  const drained = await berth('host', 'drain', 'h2', '--apply', /--apply (\w+)/.exec(plan)?.[1] ?? '', '--watch');
  expect(drained).toMatch(/h2: Drained, \d of \d done/);
  const back = await fleet.ready('db');
  expect(back.status).toMatchObject({ host: 'h1', incarnation: 3, diskIncarnation: 1, phase: 'Running' });
  expect((await fleet.client.get('volume', 'data')).status).toMatchObject({ host: 'h1', life: 3 });
  expect(back.status.migration).toMatchObject({ way: 'relayed' });
}, 120_000);
