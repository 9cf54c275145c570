import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { appendFile, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { sleep } from '../../../../base/clock.ts';
import { systemClock } from '../../../../base/system.ts';
import { identify } from '../../../host/processes.ts';
import { keptFrom, startConsoleKeeper } from './console-keeper.ts';
import { readConsole } from './console-log.ts';

const missing = ['perl', 'fallocate'].find((name) => spawnSync(name, ['--version']).error !== undefined);
const limits = { maxBytes: 64 * 1024, keptBytes: 32 * 1024, everyMs: 10 };

describe.skipIf(missing !== undefined)(
  `the keeper of a console log${missing ? ` (there is no ${missing})` : ''}`,
  () => {
    let folder: string;
    let path: string;
    let guest: ChildProcess;
    const keep = async () => {
      const writer = (await identify(guest.pid ?? 0)) ?? expect.unreachable();
      return startConsoleKeeper({ path, writer, ...limits });
    };
    beforeEach(async () => {
      folder = await mkdtemp(join(tmpdir(), 'berth-keeper-'));
      path = join(folder, 'console.log');
      await writeFile(path, '');
      guest = spawn('sleep', ['1000']);
      await once(guest, 'spawn');
    });
    afterEach(async () => {
      guest.kill('SIGKILL');
      await rm(folder, { recursive: true });
    });

    it('drops the start of a log that has become too long, and no byte of what is recent', async () => {
      await keep();
      const lines = Array.from({ length: 8000 }, (_, i) => `line ${String(i).padStart(6, '0')}\n`).join('');
      await appendFile(path, lines.slice(0, 1000));
      await appendFile(path, lines.slice(1000));
      while ((await keptFrom(path)) === 0) await sleep(systemClock, 5);
      while ((await stat(path)).blocks * 512 > limits.maxBytes) await sleep(systemClock, 5);
      const first = await readConsole(path, { start: 0, offset: 0, limit: 100_000 });
      expect(first.offset).toBe(await keptFrom(path));
      expect(lines.length - first.offset).toBeGreaterThanOrEqual(limits.keptBytes);
      expect(Buffer.from(first.data).toString()).toBe(lines.slice(first.offset));
      expect(first.size).toBe(lines.length);
    });

    it('ends with its guest, and there is one for each', async () => {
      const both = [await keep(), await keep()];
      const superfluous = await Promise.race(both.map(async (keeper) => keeper.ended.then(() => keeper)));
      const other = both.find((keeper) => keeper !== superfluous) ?? expect.unreachable();
      expect(await identify(other.pid ?? 0)).not.toBeNull();
      guest.kill('SIGKILL');
      await other.ended;
    });

    it('goes on after one that was killed where that one had come to', async () => {
      const first = await keep();
      await appendFile(path, 'x'.repeat(100_000));
      while ((await keptFrom(path)) === 0) await sleep(systemClock, 5);
      const start = await keptFrom(path);
      process.kill(first.pid ?? 0, 'SIGKILL');
      await first.ended;
      await keep();
      await appendFile(path, 'y'.repeat(100_000));
      while ((await keptFrom(path)) === start) await sleep(systemClock, 5);
      // The hole itself comes a moment later.
      const tail = await readConsole(path, { start: await keptFrom(path), offset: 0, limit: 100_000 });
      const written = 'x'.repeat(100_000) + 'y'.repeat(100_000);
      expect(tail.offset).toBeGreaterThan(start);
      expect(Buffer.from(tail.data).toString()).toBe(written.slice(tail.offset));
    });
  },
);
