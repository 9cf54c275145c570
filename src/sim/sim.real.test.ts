import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { runMuseum } from './museum/museum.ts';
import { misfortunesOf, narrowed } from './batch/narrowing.ts';
import { type RunSimOptions, runSim } from './batch/run.ts';
import { createSeedPool } from './batch/seed-pool.ts';
import { shrink } from './batch/shrink.ts';
import { drawnBy, simulate } from './simulate.ts';
import { systemClock } from '../base/system.ts';

/** One core is left to the tests that run at the same time. */
const jobs = Math.max(1, availableParallelism() - 1);

function said() {
  const text: string[] = [];
  return { out: { write: (piece: string) => text.push(piece) }, text: () => text.join('') };
}

let folder = '';
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-sim-'));
});
afterEach(() => rm(folder, { recursive: true }));

/** A run with a bug that every seed finds at once, as if the product had it. */
const withBug = async <Result>(name: string, use: (pool: ReturnType<typeof createSeedPool>) => Promise<Result>) => {
  const preload = new URL(`./museum/plant-hook.ts?bug=${name}`, import.meta.url).href;
  const pool = createSeedPool({ jobs: 1, preload });
  try {
    return await use(pool);
  } finally {
    pool.close();
  }
};

describe('the simulator', { timeout: 300_000 }, () => {
  it('finds every invariant held, twice the same, over a few seeds', async () => {
    const { out, text } = said();
    const options = { seeds: 12, firstSeed: 1, jobs, twice: true, shrink: true };
    const exitCode = await runSim(options, out);
    expect({ exitCode, text: exitCode === 0 ? '' : text() }).toEqual({ exitCode: 0, text: '' });
    expect(text()).toContain(' 0 failed');
  });

  it.each([11, 12])('gives the same run for the same seed: %i', async (seed) => {
    const first = await simulate({ seed, trace: true });
    const second = await simulate({ seed, trace: true });
    expect(second.trace).toEqual(first.trace);
    expect(second.traceHash).toBe(first.traceHash);
    expect(second.commitHash).toBe(first.commitHash);
    expect(first.commits).toBeGreaterThan(10);
  });

  it('gives another run for another seed', async () => {
    const [first, second] = [await simulate({ seed: 11 }), await simulate({ seed: 12 })];
    expect(first.commitHash).not.toBe(second.commitHash);
    expect(first.traceHash).not.toBe(second.traceHash);
  });

  it('tells the same, in the same order, whatever the number of its processes', async () => {
    const lines = async (count: number): Promise<string[]> => {
      const { out, text } = said();
      expect(await runSim({ seeds: 6, firstSeed: 40, jobs: count, twice: false, verbose: true }, out)).toBe(0);
      return text()
        .split('\n')
        .filter((line) => line.startsWith('seed '));
    };
    const alone = await lines(1);
    expect(alone.map((line) => line.split(' ')[1])).toEqual(['40', '41', '42', '43', '44', '45']);
    expect(await lines(3)).toEqual(alone);
  });

  it('ends early when asked to, with its processes', async () => {
    const over = new AbortController();
    const { out, text } = said();
    const ended = runSim(
      {
        seeds: 10_000,
        firstSeed: 1,
        jobs: 2,
        twice: false,
        verbose: true,
        signal: over.signal,
      },
      {
        write(piece: string) {
          out.write(piece);
          if (piece.startsWith('seed ')) over.abort();
        },
      },
    );
    expect(await ended).toBe(130);
    expect(text()).toMatch(/ended early, after 1 of 10000 seeds, 0 failed/);
  });

  it('tells the death of a process as the failure of its seed, and goes on', async () => {
    const broken = join(folder, 'broken.mjs');
    await writeFile(broken, "console.error('this one dies'); process.exit(7);");
    const pool = createSeedPool({ jobs: 1, preload: broken });
    const results = await Promise.all([pool.run({ seed: 1 }), pool.run({ seed: 2 })]);
    pool.close();
    for (const { lost, violation } of results) {
      expect(lost).toBe(true);
      expect(violation?.message).toBe('the process that ran it ended with exit code 7: this one dies');
    }
  });

  it('kills a run that does not come to an end', async () => {
    const hanging = join(folder, 'hanging.mjs');
    await writeFile(hanging, 'for (;;);');
    const pool = createSeedPool({ jobs: 1, preload: hanging, patienceMs: 50 });
    const { lost, violation } = await pool.run({ seed: 1 });
    pool.close();
    expect(lost).toBe(true);
    expect(violation?.message).toContain('did not come to an end within 0.05 s');
  });
});

describe('a failing seed', { timeout: 300_000 }, () => {
  /** One that finds the bug below, which is put in as if the product had it, and can be made smaller. Which one changes with the product. */
  let failing = 0;
  beforeAll(() =>
    withBug('release-before-gone', async (pool) => {
      // One that breaks early in a long storm: a shorter one breaks the same.
      const caughtBy = async (seed: number): Promise<boolean> => {
        const { stormMs } = drawnBy(seed, 'small');
        const violation = stormMs > 40_000 ? (await pool.run({ seed })).violation : undefined;
        if (violation?.invariant !== 5 || violation.atMs >= stormMs / 2) return false;
        const shorter = await pool.run({ seed, narrowing: { stormMs: stormMs / 2 } });
        return shorter.violation?.invariant === 5;
      };
      while (!(await caughtBy(++failing))) if (failing === 100) throw new Error('no seed finds the bug');
    }),
  );
  const options = (more: Partial<RunSimOptions>): RunSimOptions => ({
    seeds: 1,
    firstSeed: failing,
    jobs: 1,
    twice: false,
    preload: new URL('./museum/plant-hook.ts?bug=release-before-gone', import.meta.url).href,
    ...more,
  });

  it('is told with what broke, what led to it, how to see it again, and how small it can be made', async () => {
    const { out, text } = said();
    expect(await runSim(options({ shrink: true }), out)).toBe(1);
    expect(text()).toMatch(/invariant 5 is broken at [\d.]+ s: a guest of inst_\w+ .* holds no room/);
    expect(text()).toMatch(/ commit \d+: /);
    expect(text()).toMatch(/VIOLATION of invariant 5/);
    expect(text()).toContain(`see it again: npm run sim -- --seed ${failing} --seeds 1\n`);
    expect(text()).toMatch(/smaller, after \d+ runs: npm run sim -- --seed \d+ --seeds 1 --without .* --storm \d+\n/);
  });

  it('is kept once, with what it found', async () => {
    const seedsFile = join(folder, 'seeds.txt');
    await writeFile(seedsFile, '# kept\n');
    for (let times = 0; times < 2; times++) await runSim(options({ keep: true, seedsFile }), said().out);
    expect(await readFile(seedsFile, 'utf8')).toMatch(/^# kept\n\d+ invariant 5 is broken at [^\n]+\n$/);
  });

  it('is not kept when it was narrowed: the number alone would not show it again', async () => {
    const seedsFile = join(folder, 'seeds.txt');
    await runSim(options({ keep: true, seedsFile, narrowing: { stormMs: 60_000, tenants: 2 } }), said().out);
    await expect(readFile(seedsFile, 'utf8')).rejects.toThrow('ENOENT');
  });

  it('is told as JSON, too', async () => {
    const { out, text } = said();
    await runSim(options({ json: true }), out);
    const [run, whole] = text()
      .trimEnd()
      .split('\n')
      .map((line): unknown => JSON.parse(line));
    expect(run).toMatchObject({
      seed: failing,
      violation: { invariant: 5 },
      fault: expect.stringContaining('invariant 5'),
    });
    expect(whole).toMatchObject({ failed: [failing] });
  });

  it('shrinks to less that still breaks the same', async () => {
    const scenario = drawnBy(failing, 'small');
    await withBug('release-before-gone', async (pool) => {
      const before = await pool.run({ seed: failing });
      const { narrowing, runs } = await shrink({
        scenario,
        from: {},
        invariant: 5,
        atMs: before.violation?.atMs ?? 0,
        run: (candidate) => pool.run({ seed: failing, narrowing: candidate }),
        clock: systemClock,
      });
      const after = await pool.run({ seed: failing, narrowing });
      expect(after.violation?.invariant).toBe(5);
      expect(runs).toBeLessThanOrEqual(60);
      const smaller = narrowed(scenario, narrowing);
      expect(misfortunesOf(smaller).length).toBeLessThan(misfortunesOf(scenario).length);
      expect(smaller.stormMs).toBeLessThan(scenario.stormMs);
      expect(smaller.hosts.length).toBeLessThanOrEqual(scenario.hosts.length);
    });
  });
});

describe('the museum', { timeout: 1_200_000 }, () => {
  it('says of a catch what led to it and how to see it again', async () => {
    const { out, text } = said();
    const options = { bugs: ['release-before-gone'], jobs: 1, firstSeed: 1, verbose: true };
    expect(await runMuseum(options, out)).toBe(0);
    expect(text()).toMatch(/VIOLATION of invariant 5: /);
    expect(text()).toMatch(/npm run sim -- --plant release-before-gone --seed \d+ --seeds 1 --verbose/);
  });

  it('fails when a bug is not caught', async () => {
    const { out, text } = said();
    expect(await runMuseum({ bugs: ['watch-resumes-late'], jobs: 1, firstSeed: 1, seedsMax: 0 }, out)).toBe(1);
    expect(text()).toContain('"watch-resumes-late" was not caught in 0 runs');
  });

  it('knows what bugs it has', async () => {
    const { out, text } = said();
    expect(await runMuseum({ bugs: ['drop-table'], jobs: 1, firstSeed: 1, seedsMax: 1 }, out)).toBe(2);
    expect(text()).toContain('drop-ledger-condition');
  });
});
