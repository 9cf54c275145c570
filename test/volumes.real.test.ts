// A volume from its making to its end, as users go: real server, agent, QEMU and the tiny image.

import { once } from 'node:events';
import { chmod, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Fleet, runBerth, startFleet } from './processes.ts';
import { type RunningCommand, runningCommand } from './running-command.ts';
import { tinyImage } from './tiny-image.ts';

let directory: string;
let fleet: Fleet;
const sitting: RunningCommand[] = [];

beforeAll(async () => {
  const tiny = await tinyImage();
  directory = await mkdtemp(join(tmpdir(), 'berth-volumes-'));
  await chmod(directory, 0o711); // so that QEMU runs as a user of its own
  fleet = await startFleet(directory);
  await fleet.client.create('image', { metadata: { name: 'tiny' }, spec: tiny.spec });
}, 120_000);
afterAll(async () => {
  for (const { child } of sitting) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
  for (const name of ['one', 'two', 'three']) {
    await fleet.client.delete('instance', name).catch(() => undefined);
    await fleet.gone(name);
  }
  await fleet.stop();
  await rm(directory, { recursive: true, force: true });
});

async function berth(...words: string[]): Promise<string> {
  const { stdout, stderr, code } = await runBerth(words, fleet.environment);
  expect(code, stderr).toBe(0);
  return stdout;
}

async function run(name: string, ...words: string[]): Promise<(command: string, answer: RegExp) => Promise<string>> {
  await berth('run', 'tiny', '--name', name, '--cpus', '1', '--memory', '128MiB', '--wait', '-t', '60s', ...words);
  const console = runningCommand(fleet.environment, ['console', name, '--history', '0']);
  sitting.push(console);
  return (command, answer) => {
    console.type(`${command}\r`);
    return console.until(answer);
  };
}

/** The guest's name of the disk with this serial number, once it is there. */
const disk = (serial: string): string =>
  `D=; while [ -z "$D" ]; do for d in /sys/block/vd*; do [ "$(cat $d/serial)" = ${serial} ] && D=/dev/\${d##*/}; done; done`;

it('keeps what guests wrote from one to the next, grows and is copied under them, and leaves nothing', async () => {
  await berth('volume', 'create', 'data', '--size', '1GiB');
  const one = await run('one', '-v', 'data');
  await one(`${disk('data')}; echo first-words >$D; sync; echo written-$((6*7))`, /\nwritten-42/);
  expect(await berth('volume', 'show', 'data')).toMatch(/instance +one/);
  await berth('rm', 'one', '--wait');

  // Given to one that runs.
  const two = await run('two');
  await berth('volume', 'attach', 'data', 'two');
  await two(`${disk('data')}; head -c 11 $D; echo; echo read-$((6*7))`, /first-words\s+read-42/);
  await berth('volume', 'snapshot', 'create', 'data', 'then', '--wait', '-t', '60s');
  await two('echo other-words >$D; sync; echo changed-$((6*7))', /\nchanged-42/);
  await berth('volume', 'resize', 'data', '2GiB', '--wait', '-t', '60s');
  await two('while [ "$(cat /sys/block/${D##*/}/size)" != 4194304 ]; do :; done; echo grown-$((6*7))', /\ngrown-42/);
  // An agent that is killed finds it again.
  await fleet.restartAgent();

  // A copy of what was.
  await berth('volume', 'create', 'old', '--size', '2GiB', '--from', 'data@then', '--wait', '-t', '60s');
  const three = await run('three', '-v', 'old:ro');
  await three(`${disk('old')}; head -c 11 $D; echo; echo read-$((6*7))`, /first-words\s+read-42/);
  expect(await three('echo no >$D && echo wrote-$((6*7)); echo tried-$((6*7))', /\ntried-42/)).not.toMatch(
    /\nwrote-42/,
  );

  // Taken from one that runs, and given to another.
  await berth('volume', 'detach', 'data');
  await berth('volume', 'attach', 'data', 'three');
  await three(`${disk('data')}; head -c 11 $D; echo; echo read-$((6*7))`, /other-words\s+read-42/);

  await berth('rm', 'two', 'three', '--wait');
  expect((await runBerth(['volume', 'rm', 'data', 'old', '--wait', '-t', '60s'], fleet.environment)).stdout).toBe(
    'data with its snapshot removed\nold removed\n',
  );
  expect(await readdir(join(directory, 'agent', 'volumes'))).toEqual([]);
}, 240_000);
