import { appendFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createManualClock } from '../../base/manual-clock.ts';
import { system } from '../../base/system.ts';
import { keepLogs } from './keep-logs.ts';
import { SilenceWatch } from './silence-watch.ts';

describe('the quickstart, while a guest boots', () => {
  let directory: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'berth-silence-'));
  });
  afterEach(() => rm(directory, { recursive: true }));

  const begin = () => {
    const clock = createManualClock();
    const consolePath = join(directory, 'console.log');
    const told: string[] = [];
    const state = { machine: 'QEMU (pid 7) is in the run state "running"' };
    const watch = new SilenceWatch({
      name: 'hello',
      consolePath,
      silenceMsMax: 60_000,
      look: async () => state.machine,
      tell: (text) => told.push(text),
      clock,
    });
    const over = new AbortController();
    const ended = watch.run(over.signal).then(
      () => 'ended',
      (error: unknown) => error,
    );
    /** Its file is really looked at, which takes turns of the event loop; 0.5 s are one look. */
    const pass = async (byMs: number): Promise<void> => {
      for (let passedMs = 0; passedMs < byMs; passedMs += 500) {
        const { promise: looked, resolve } = Promise.withResolvers<void>();
        const untilWaiting = async (): Promise<void> => {
          while (clock.nextDueMs() === undefined && !finished) await system.turn();
          resolve();
        };
        clock.advance(500);
        void untilWaiting();
        await looked;
      }
    };
    let finished = false;
    void ended.then(() => (finished = true));
    return { watch, told, ended, over, pass, consolePath, state };
  };

  it('says how the hypervisor stands after ten seconds of silence, and each ten seconds', async () => {
    const { told, pass, over, ended, watch } = begin();
    watch.heardStatus('Running, under kvm');
    await pass(9500);
    expect(told).toEqual([]);
    await pass(11_000);
    expect(told).toEqual([
      'nothing on the console of hello for 10.0 s: QEMU (pid 7) is in the run state "running" (Running, under kvm)',
      'nothing on the console of hello for 20.0 s: QEMU (pid 7) is in the run state "running" (Running, under kvm)',
    ]);
    over.abort();
    expect(await ended).toBe('ended');
  });

  it('gives up a minute after the last sign of life, and says how the hypervisor stands', async () => {
    const { pass, ended, consolePath, watch, state, told } = begin();
    await pass(50_000);
    await writeFile(consolePath, 'Linux version 6.1\n');
    await pass(50_000);
    watch.heardStatus('Running, AcceleratorFallback, under tcg');
    await pass(50_000);
    await appendFile(consolePath, 'Welcome\n');
    await pass(59_500);
    state.machine = 'QEMU (pid 7) does not answer';
    expect(told.length).toBeGreaterThan(15);
    await pass(1000);
    expect(await ended).toMatchObject({
      exitCode: 8,
      message:
        '"hello" gave no sign of life for 60.0 s: QEMU (pid 7) does not answer (Running, AcceleratorFallback, under tcg)',
    });
  });

  it('keeps what a failed guest has said, also where it said nothing', async () => {
    const path = join(directory, 'hello.log');
    await writeFile(join(directory, 'qemu.stderr'), 'KVM internal error. Suberror: 1\n');
    expect(await keepLogs(directory, { path, heading: 'instance "hello" failed' })).toBe(true);
    expect(await readFile(path, 'utf8')).toBe(
      'instance "hello" failed\n--- console.log\n\n--- qemu.stderr\nKVM internal error. Suberror: 1\n\n',
    );
    expect(await keepLogs(directory, { path: join(directory, 'absent', 'hello.log'), heading: '' })).toBe(false);
  });
});
