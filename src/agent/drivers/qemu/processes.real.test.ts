import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { identify, isAlive } from '../../host/processes.ts';
import { findGuestProcess, isGuestProcess, killGuestProcess } from './processes.ts';

const uuid = '00000000-0000-8000-8000-000000000001';

describe('processes', () => {
  let directory: string;
  beforeEach(async () => {
    directory = await realpath(await mkdtemp(join(tmpdir(), 'berth-processes-')));
  });
  afterEach(() => rm(directory, { recursive: true }));

  /** A process that looks like a guest's QEMU to anyone who only reads command lines. */
  const startLookalike = async (cwd: string, words: string[]) => {
    const child = spawn('sh', ['-c', 'read forever', 'qemu', ...words], { cwd, stdio: ['pipe', 'ignore', 'ignore'] });
    await once(child, 'spawn');
    const process = await identify(child.pid ?? 0);
    if (process === null) throw new Error('the process has gone');
    const end = async (): Promise<void> => {
      child.kill('SIGKILL');
      await once(child, 'exit');
    };
    return { process, end };
  };

  it('are found by directory and uuid', async () => {
    const { process, end } = await startLookalike(directory, ['-uuid', uuid]);
    expect(await findGuestProcess(directory, uuid)).toEqual(process);
    expect(await findGuestProcess(directory)).toEqual(process);
    expect(await findGuestProcess(directory, uuid.replace('1', '2'))).toBeNull();
    expect(await findGuestProcess(tmpdir(), uuid)).toBeNull();
    await end();
    expect(await isAlive(process)).toBe(false);
    expect(await findGuestProcess(directory, uuid)).toBeNull();
  });

  it('are never killed when the pid belongs to a stranger now', async () => {
    const { process, end } = await startLookalike(directory, ['-uuid', uuid]);
    const former = { pid: process.pid, startTicks: process.startTicks - 1 };
    expect(await isGuestProcess(former, { directory, uuid })).toBe(false);
    expect(await killGuestProcess(former, { directory, uuid })).toBe(false);
    expect(await killGuestProcess(process, { directory: tmpdir(), uuid })).toBe(false);
    expect(await killGuestProcess(process, { directory, uuid: 'another' })).toBe(false);
    expect(await isAlive(process)).toBe(true);
    await end();
  });

  it('are known while they become another program', async () => {
    const becomes = '[ "$1" -gt 400 ] && echo over && read forever; n=$1; shift; exec sh -c "$0" "$0" $((n + 1)) "$@"';
    const words = ['-c', becomes, becomes, '0', '-uuid', uuid];
    const child = spawn('sh', words, { cwd: directory, stdio: ['pipe', 'pipe', 'ignore'] });
    let over = false;
    child.stdout.once('data', () => {
      over = true;
    });
    await once(child, 'spawn');
    const process = await identify(child.pid ?? 0);
    if (process === null) throw new Error('the process has gone');
    let unknown = 0;
    while (!over) if (!(await isGuestProcess(process, { directory, uuid }))) unknown += 1;
    expect(unknown).toBe(0);
    child.kill('SIGKILL');
    await once(child, 'exit');
    expect(await isGuestProcess(process, { directory, uuid })).toBe(false);
  });

  it('that only happen to work in the directory are strangers', async () => {
    const { process, end } = await startLookalike(directory, ['--help']);
    expect(await killGuestProcess(process, { directory })).toBe(false);
    await end();
  });
});
