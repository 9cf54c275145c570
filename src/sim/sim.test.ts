import { describe, expect, it } from 'vitest';
import { plants } from './plants.ts';
import { runSim } from './run.ts';
import { simulate } from './simulate.ts';

function said() {
  const text: string[] = [];
  return { out: { write: (piece: string) => text.push(piece) }, text: () => text.join('') };
}

describe('the simulator', { timeout: 120_000 }, () => {
  it('finds every invariant held, over the seeds that once failed and twenty more', async () => {
    const { out, text } = said();
    const exitCode = await runSim({ seeds: 20, firstSeed: 1, checkDeterminism: false, verbose: false }, out);
    expect({ exitCode, text: text() }).toMatchObject({ exitCode: 0 });
    expect(text()).toContain(' 0 failed');
  });

  it.each([11, 12, 13])('gives the same run for the same seed: %i', async (seed) => {
    const first = await simulate({ seed, trace: true });
    const second = await simulate({ seed, trace: true });
    expect(second.trace).toEqual(first.trace);
    expect(second.commitHash).toBe(first.commitHash);
    expect(first.commits).toBeGreaterThan(10);
  });

  it('gives another run for another seed', async () => {
    expect((await simulate({ seed: 11 })).commitHash).not.toBe((await simulate({ seed: 12 })).commitHash);
  });

  it.each(Object.entries(plants))('catches the planted bug "%s" as what it is', async (plant, { invariant }) => {
    const { out, text } = said();
    const options = { seeds: 60, firstSeed: 1, plant, checkDeterminism: false, verbose: false };
    expect(await runSim(options, out)).toBe(0);
    expect(text()).toContain(`as invariant ${invariant}`);
  });

  it('says of a failing seed what broke, what led to it and how to see it again', async () => {
    const { out, text } = said();
    const options = { seeds: 60, firstSeed: 1, plant: 'drop-ledger-condition', checkDeterminism: false, verbose: true };
    expect(await runSim(options, out)).toBe(0);
    expect(text()).toMatch(/seed \d+: invariant 1 is broken/);
    expect(text()).toMatch(/ commit \d+: /);
    expect(text()).toMatch(/VIOLATION of invariant 1: provider host_\w+ of host host-\d holds \d+ \w+ of \d+/);
    expect(text()).toMatch(/npm run sim -- --seed \d+ --seeds 1 --plant drop-ledger-condition/);
  });

  it('knows what bugs it can plant', async () => {
    const { out, text } = said();
    const options = { seeds: 1, firstSeed: 1, plant: 'drop-table', checkDeterminism: false, verbose: false };
    expect(await runSim(options, out)).toBe(2);
    expect(text()).toContain('drop-ledger-condition');
  });
});
