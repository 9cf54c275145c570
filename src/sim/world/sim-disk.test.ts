import { describe, expect, it } from 'vitest';
import { seededPrng } from '../../base/prng.ts';
import { system } from '../../base/system.ts';
import { type DiskCalls, ledgerFileAt } from '../../agent/ledger/ledger-file.ts';
import { createChances } from './chances.ts';
import { createProcessClock } from './process-clock.ts';
import { SimDisk } from './sim-disk.ts';
import { createTally } from '../batch/tally.ts';
import { Timeline } from './timeline.ts';

function begin(seed: number) {
  const timeline = new Timeline(seededPrng(seed));
  const tally = createTally();
  const disk = new SimDisk({
    timeline,
    prng: seededPrng(seed),
    weather: () => ({ latencyMsMean: 5, failed: 0 }),
    tally,
    chances: createChances({ tally, prng: seededPrng(3) }),
  });
  const finish = async <Result>(work: Promise<Result>): Promise<Result> => {
    await system.turn();
    while (timeline.step(timeline.nowMs + 1000)) await system.turn();
    return work;
  };
  const calls = (): DiskCalls => disk.calls(createProcessClock(timeline));
  return { disk, calls, finish };
}

/** What is read after two writes and a power cut, over many seeds. */
async function readAfterPowerCut(fileOn: (calls: DiskCalls) => ReturnType<typeof ledgerFileAt>): Promise<Set<string>> {
  const found = new Set<string>();
  for (let seed = 1; seed <= 60; seed++) {
    const { disk, calls, finish } = begin(seed);
    await finish(fileOn(calls()).write('old text'));
    await finish(fileOn(calls()).write('new text'));
    disk.losePower();
    found.add(String(await finish(ledgerFileAt('/ledger', calls()).read())));
  }
  return found;
}

describe('the disk of a host', () => {
  it('keeps a ledger that is synced as it should be, whole, when the power goes', async () => {
    expect([...(await readAfterPowerCut((calls) => ledgerFileAt('/ledger', calls)))]).toEqual(['new text']);
  });

  it('loses a rename whose directory was not synced', async () => {
    const careless = (calls: DiskCalls) => ledgerFileAt('/ledger', { ...calls, syncDirectory: async () => {} });
    expect([...(await readAfterPowerCut(careless))].sort()).toEqual(['new text', 'null']);
  });

  it('tears a file that was not synced', async () => {
    const careless = (calls: DiskCalls) => ledgerFileAt('/ledger', { ...calls, sync: async () => {} });
    expect((await readAfterPowerCut(careless)).size).toBeGreaterThan(2);
  });

  it('keeps everything when only the agent dies', async () => {
    const { calls, finish } = begin(1);
    const first = calls();
    await finish(first.write('/a', 'text'));
    expect(await finish(calls().read('/a'))).toBe('text');
  });
});
