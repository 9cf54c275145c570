import { execFileSync, spawnSync } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, readlink, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { sleep } from '../../../base/clock.ts';
import { systemClock } from '../../../base/system.ts';
import { chooseBuildJail, unmountBelow } from './build-jail.ts';
import { type BuildContext, runStep } from './build-step.ts';

const isolates = spawnSync('unshare', ['--mount', '--pid', '--fork', 'true']).status === 0;
const reason = isolates ? '' : ' (there are no mount namespaces here)';

describe('the jail of a build', () => {
  let workDirectory: string;
  let stop: AbortController;
  beforeEach(async () => {
    workDirectory = await realpath(await mkdtemp(join(tmpdir(), 'berth jail-')));
    await mkdir(join(workDirectory, 'mnt'));
    stop = new AbortController();
  });
  afterEach(async () => {
    await unmountBelow(workDirectory);
    await rm(workDirectory, { recursive: true, force: true });
  });
  const step = (context: Partial<BuildContext>, script: string): Promise<string> =>
    runStep({ workDirectory, jail: [], signal: stop.signal, tell: () => {}, ...context }, 'sh', ['-c', script]);
  /** Also one that has left the group of its step. */
  const script = 'mount -t tmpfs none mnt; mkdir mnt/inner; setsid sh -c "echo > begun; exec sleep 1000" & wait';
  const begun = async (): Promise<void> => {
    while (!(await readdir(workDirectory)).includes('begun')) await sleep(systemClock, 5);
  };
  const mounts = async (): Promise<string[]> =>
    (await readFile('/proc/self/mountinfo', 'utf8')).split('\n').filter((line) => line.includes('berth\\040jail-'));
  const working = async (): Promise<string[]> => {
    const found: string[] = [];
    for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name)))
      if ((await readlink(`/proc/${pid}/cwd`).catch(() => '')) === workDirectory) found.push(pid);
    return found;
  };

  it.skipIf(!isolates)(
    `keeps what a step mounts to the step, and ends all that it has started when it is given up${reason}`,
    async () => {
      const running = step({ jail: await chooseBuildJail() }, script);
      await begun();
      expect(await mounts()).toEqual([]);
      stop.abort();
      await expect(running).rejects.toThrow('given up');
      while ((await working()).length > 0) await sleep(systemClock, 5);
      expect(await readdir(join(workDirectory, 'mnt'))).toEqual([]);
    },
  );

  it('has a /proc in which a step finds itself', async () => {
    const script = 'read -r pid rest < /proc/self/stat; ls /proc/$$/fd > /dev/null && echo "$$ is $pid"';
    expect(await step({ jail: await chooseBuildJail() }, script)).toMatch(/^(\d+) is \1\n$/);
  });

  it('passes on what a step says, and how it ended', async () => {
    const jail = await chooseBuildJail();
    expect(await step({ jail }, 'echo fine')).toBe('fine\n');
    await expect(step({ jail }, 'echo no such thing >&2; exit 3')).rejects.toThrow(
      /sh ended with 3:\n {2}no such thing/,
    );
  });

  it.skipIf(!isolates)(
    `is not needed to be given up at once, and what stays mounted without it is unmounted${reason}`,
    async () => {
      const running = step({}, script);
      await begun();
      stop.abort();
      await expect(running).rejects.toThrow('given up');
      expect(await mounts()).toHaveLength(1);
      execFileSync('mount', ['-t', 'tmpfs', 'none', join(workDirectory, 'mnt', 'inner')]);
      await unmountBelow(workDirectory);
      expect(await mounts()).toEqual([]);
      for (const pid of await working()) process.kill(Number(pid), 'SIGKILL');
    },
  );
});
