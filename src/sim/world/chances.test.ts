import { describe, expect, it } from 'vitest';
import { seededPrng } from '../../base/prng.ts';
import { createChances } from './chances.ts';
import { createTally } from '../batch/tally.ts';

const kind = 'network-duplicate';
const always = 1000;
const hardlyEver = 1;

/** Luck spares every call that it may. */
function begin(seed = 1, tally = createTally()) {
  const chances = createChances({ tally, prng: seededPrng(seed) });
  const own = { ...seededPrng(seed), chance: (rate: number) => rate === always };
  return { befalls: (rate: number) => chances.befalls(kind, rate, own), chances, tally };
}

describe('what was drawn', () => {
  it('befalls by its rate, and is counted', () => {
    const { befalls, tally } = begin();
    expect([befalls(always), befalls(always), befalls(0)]).toEqual([true, true, false]);
    expect(tally.counts.get(kind)).toBe(2);
  });

  it('befalls one call, after as many as the seed lets luck spare', () => {
    const firsts = Array.from({ length: 60 }, (_, seed) => {
      const { befalls } = begin(seed);
      const befallen = Array.from({ length: 50 }, () => befalls(hardlyEver));
      expect(befallen.filter((each) => each)).toHaveLength(1);
      return befallen.indexOf(true);
    });
    expect([...new Set(firsts)].sort()).toEqual([0, 1, 2]);
  });

  it('waits for the storm', () => {
    const { befalls } = begin();
    expect(Array.from({ length: 50 }, () => befalls(0))).not.toContain(true);
    expect(Array.from({ length: 50 }, () => befalls(hardlyEver))).toContain(true);
  });
});

describe('at the end', () => {
  const seed = 1;
  /** By this seed. */
  const spared = 2;
  const told = (calls: number) => {
    const { befalls, chances, tally } = begin(seed);
    for (let i = 0; i < calls; i++) befalls(hardlyEver);
    chances.end([kind]);
    return [...tally.counts.keys()];
  };

  it.each([
    ['what had no call', 0, [`nothing-to-hit-${kind}`]],
    ['what had too few calls', spared, [`nothing-to-hit-${kind}`]],
    ['what had one more', spared + 1, [kind]],
  ])('%s is told as such', (_, calls, kinds) => expect(told(calls)).toEqual(kinds));

  it('what had calls enough is not excused', () => {
    const told: string[] = [];
    const { befalls, chances } = begin(seed, { counts: new Map(), hit: (each) => told.push(each) });
    for (let i = 0; i < 50; i++) befalls(hardlyEver);
    chances.end([kind]);
    expect(told).not.toContain(`nothing-to-hit-${kind}`);
  });
});
