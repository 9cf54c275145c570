// Ctrl-C during the build of an image: it leaves no mount, no process and no file.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, readlink, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { sleep } from '../src/base/clock.ts';
import { system, systemClock } from '../src/base/system.ts';

const berth = join(import.meta.dirname, '..', 'bin', 'berth.js');
const reason = system.userId() === 0 ? undefined : 'only root can install packages into a folder';

it.skipIf(reason !== undefined)(
  `an image build that is interrupted while it has something mounted leaves nothing${reason ? ` (${reason})` : ''}`,
  async () => {
    const directory = await mkdtemp(join(tmpdir(), 'berth-interrupted-'));
    const words = [berth, 'image', 'build', 'debian-12', '--no-add', '--directory', directory];
    const build = spawn(system.nodePath(), words, { stdio: ['ignore', 'ignore', 'inherit'] });
    const ended = once(build, 'exit');
    while ((await mountsBelow(directory)).length === 0) {
      expect(build.exitCode, 'the build ended before anything was mounted').toBeNull();
      await sleep(systemClock, 20);
    }
    build.kill('SIGINT');
    expect(await ended).toEqual([130, null]);
    expect(await mountsBelow(directory)).toEqual([]);
    expect(await processesBelow(directory)).toEqual([]);
    expect(await readdir(directory)).toEqual([]);
    await rm(directory, { recursive: true });
  },
  300_000,
);

async function processes(): Promise<string[]> {
  return (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
}

/** As any process sees them, each in its own namespace. */
async function mountsBelow(directory: string): Promise<string[]> {
  const found: string[] = [];
  for (const pid of await processes()) {
    const mounts = await readFile(`/proc/${pid}/mountinfo`, 'utf8').catch(() => ''); // it has ended
    found.push(...mounts.split('\n').filter((line) => line.includes(` ${directory}/`)));
  }
  return found;
}

async function processesBelow(directory: string): Promise<string[]> {
  const found: string[] = [];
  for (const pid of await processes())
    for (const name of ['cwd', 'root', 'exe']) {
      const path = await readlink(`/proc/${pid}/${name}`).catch(() => ''); // it has ended
      if (path.startsWith(`${directory}/`)) found.push(`${pid} ${name} ${path}`);
    }
  return found;
}
