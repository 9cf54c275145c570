// A virtual machine that moves between two hosts with its volume, as operators go: real server, agents, QEMU and the tiny image. Its disks go
// on where they were.

import { once } from 'node:events';
import { chmod, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { hostTokenOf } from '../src/server/http/tokens.ts';
import { type BerthProcess, type Fleet, runBerth, startBerth, startFleet } from './processes.ts';
import { type RunningCommand, runningCommand } from './running-command.ts';
import { imageDirectory, tinyImage } from './tiny-image.ts';

let directory: string;
let fleet: Fleet;
let other: BerthProcess;
let config: string;
const sitting: RunningCommand[] = [];

const startOther = () => startBerth(['agent', '--config', config], /registered/);

beforeAll(async () => {
  const tiny = await tinyImage();
  directory = await mkdtemp(join(tmpdir(), 'berth-migration-'));
  await chmod(directory, 0o711); // so that QEMU runs as a user of its own
  fleet = await startFleet(directory, { agent: { moveAddress: '127.0.0.1' } });
  const secret = Buffer.from((await readFile(join(fleet.serverDirectory, 'secret'), 'utf8')).trim(), 'base64url');
  config = join(directory, 'h2.yaml');
  const settings = {
    ...{
      serverUrl: fleet.url,
      token: hostTokenOf(secret, 'h2', 0),
      hostName: 'h2',
      machineId: '2'.repeat(32), // another machine
      dataDirectory: join(directory, 'h2'),
    },
    ...{ drivers: ['qemu'], moveAddress: '127.0.0.1', imageRoots: [directory, imageDirectory] },
  };
  await writeFile(config, JSON.stringify(settings), { mode: 0o600 });
  other = await startOther();
  await fleet.client.create('image', { metadata: { name: 'tiny' }, spec: tiny.spec });
}, 240_000);
afterAll(async () => {
  for (const { child } of sitting) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
  await fleet.client.delete('instance', 'db').catch(() => undefined);
  await fleet.gone('db');
  await other.stop();
  await fleet.stop();
  await rm(directory, { recursive: true, force: true });
});

async function berth(...words: string[]): Promise<string> {
  const { stdout, stderr, code } = await runBerth(words, fleet.environment);
  expect(code, `${stderr}${stdout}`).toBe(0);
  return stdout;
}

/**
 * Types commands at the console of the guest, and waits for the answer of each. What is typed while there is no connection is lost, so it
 * is typed again: these commands may run twice.
 */
function sitDown(): (command: string, answer: RegExp) => Promise<string> {
  const console = runningCommand(fleet.environment, ['console', 'db', '--history', '0']);
  sitting.push(console);
  return async (command, answer) => {
    const type = (): void => console.type(`${command}\r`);
    type();
    const again = setInterval(type, 10_000);
    try {
      return await console.until(answer);
    } finally {
      clearInterval(again);
    }
  };
}

/** The guest's name of the disk with this serial number, once it is there. */
const disk = (serial: string): string =>
  `D=; while [ -z "$D" ]; do for d in /sys/block/vd*; do [ "$(cat $d/serial)" = ${serial} ] && D=/dev/\${d##*/}; done; done`;

it('goes on with its disk and its volume, snapshots included, and leaves nothing behind', async () => {
  await berth('volume', 'create', 'data', '--size', '1GiB');
  await berth(
    'run',
    'tiny',
    '--name',
    'db',
    '--cpus',
    '1',
    '--memory',
    '128MiB',
    '--disk',
    '1GiB',
    '-v',
    'data',
    '--wait',
    '-t',
    '170s',
  );
  const from = (await fleet.client.get('instance', 'db')).status.host ?? '';
  const [to, toDirectory, fromDirectory] =
    from === 'h1'
      ? ['h2', join(directory, 'h2'), join(directory, 'agent')]
      : ['h1', join(directory, 'agent'), join(directory, 'h2')];
  const before = sitDown();
  await before(`${disk('data')}; echo count-41 >$D; sync; echo written-$((6*7))`, /\nwritten-42/);
  await before('echo mine-17 | dd of=/dev/vda bs=1M seek=100; sync; echo written-$((6*8))', /\nwritten-48/);
  await berth('volume', 'snapshot', 'create', 'data', 'then', '--wait', '-t', '170s');

  sitting.at(-1)?.child.kill(); // it would sit down at the moved guest, too
  const plan = await berth('migrate', 'db');
  expect(plan).toContain(`Plan to move instance db from ${from} to ${to}`);
  expect(plan).toContain('volume data');
  expect(plan).toContain('from host to host');
  const hash = /--apply (\w+)/.exec(plan)?.[1] ?? '';
  expect(await berth('migrate', 'db', '--apply', hash, '--wait')).toContain(`db: Done, from ${from} to ${to}`);

  const moved = await fleet.until('db', ({ status }) => status.guest?.ready === true);
  expect(moved.status).toMatchObject({
    host: to,
    incarnation: 2,
    diskIncarnation: 1,
    migration: { step: 'Done', way: 'direct' },
  });
  const after = sitDown();
  await after(`${disk('data')}; head -c 8 $D; echo; echo read-$((6*7))`, /count-41\s+read-42/);
  await after(
    'dd if=/dev/vda bs=1M skip=100 count=1 | head -c 7; echo; echo read-$((6*8))',
    /mine-17\s+(\S.*\s+)*read-48/,
  );
  const volume = await fleet.client.get('volume', 'data');
  expect(volume.status).toMatchObject({ host: to, volume: { snapshots: [{ name: 'then' }] } });
  const left = async (folder: string) =>
    (await readdir(join(fromDirectory, folder)).catch(() => [])).filter((name) => /^(vol|inst)_/.test(name));
  for (const folder of ['volumes', 'incoming', 'qemu']) expect([folder, await left(folder)]).toEqual([folder, []]);
  expect(await readdir(join(toDirectory, 'incoming'))).toEqual([]);
}, 240_000);
