// The simulator over many seeds: those that once failed, and a hundred more. A few run with every `npm test` (sim.real.test.ts).

import { availableParallelism } from 'node:os';
import { describe, expect, it } from 'vitest';
import { keptSeedsFile } from './kept-seeds.ts';
import { runSim } from './run.ts';

/** One core is left to the tests that run at the same time. */
const jobs = Math.max(1, availableParallelism() - 1);

describe('the simulator', { timeout: 900_000 }, () => {
  it('finds every invariant held, twice the same, over the seeds that once failed and a hundred more', async () => {
    const pieces: string[] = [];
    const out = { write: (piece: string) => pieces.push(piece) };
    const text = (): string => pieces.join('');
    const options = { seeds: 100, firstSeed: 1, jobs, twice: true, shrink: true, seedsFile: keptSeedsFile };
    const exitCode = await runSim(options, out);
    expect({ exitCode, text: exitCode === 0 ? '' : text() }).toEqual({ exitCode: 0, text: '' });
    expect(text()).toContain(' 0 failed');
  });
});
