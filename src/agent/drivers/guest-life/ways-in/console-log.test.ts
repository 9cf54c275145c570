import { appendFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createManualClock, type ManualClock } from '../../../../base/manual-clock.ts';
import { systemClock } from '../../../../base/system.ts';
import { type ConsoleFollower, followConsole, watchFile } from './console-log.ts';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('the console of a guest that floods it', () => {
  let folder: string;
  let path: string;
  let clock: ManualClock;
  let follower: ConsoleFollower | undefined;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'berth-console-'));
    path = join(folder, 'console.log');
    await writeFile(path, '');
    clock = createManualClock();
    follower = undefined;
  });
  afterEach(async () => {
    follower?.stop();
    await rm(folder, { recursive: true });
  });

  it('is not heard any more after many writes, and then one look stands for all of them', async () => {
    let heard = Promise.withResolvers<void>();
    const watch = watchFile(path, clock, () => heard.resolve());
    for (let writes = 0; clock.nextDueMs() === undefined; writes++) {
      expect(writes).toBeLessThan(10_000);
      heard = Promise.withResolvers<void>();
      await appendFile(path, 'x');
      await heard.promise;
    }
    heard = Promise.withResolvers<void>();
    clock.advance(clock.nextDueMs() ?? 0);
    await heard.promise;
    heard = Promise.withResolvers<void>();
    await appendFile(path, 'x');
    await heard.promise; // and it listens again
    watch?.close();
    expect(clock.nextDueMs()).toBeUndefined();
  });

  it('is looked at so often in the long run, however often it is written', async () => {
    let looks = 0;
    follower = followConsole({
      path,
      clock,
      fromOffset: 0,
      marks: { ready: true },
      onMarks: () => {},
      onPassedOver: () => {},
      onSize: () => {
        looks += 1;
        void follower?.check();
      },
    });
    const checked = follower.check();
    while (looks < 200) await turn();
    expect(clock.nextDueMs()).toBeDefined();
    const before = looks;
    await clock.advanceSettled(10_000, () => new Promise((resolve) => setTimeout(resolve, 2)));
    expect(looks - before).toBeLessThanOrEqual(10 * 20 + 1);
    expect(looks).toBeGreaterThan(before);
    follower.stop();
    await checked;
  });

  it('is not read to its end, which is said, and a boot that ends later is seen all the same', async () => {
    const passed: number[] = [];
    const ready = Promise.withResolvers<void>();
    let size = 0;
    follower = followConsole({
      path,
      clock: systemClock,
      fromOffset: 0,
      marks: { ready: false },
      onMarks: () => ready.resolve(),
      onPassedOver: (bytes) => passed.push(bytes),
      onSize: (bytes) => (size = bytes),
    });
    await appendFile(path, Buffer.alloc(10 * 1024 * 1024, 'chatter\n'));
    while (passed.length === 0) await follower.check();
    expect(passed[0]).toBeGreaterThan(0);
    expect(size).toBe(10 * 1024 * 1024);
    await appendFile(path, '\nberth: ready\n');
    await ready.promise;
  });
});
