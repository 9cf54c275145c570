import { describe, expect, it } from 'vitest';
import { seededPrng } from '../base/prng.ts';
import { createChances } from './chances.ts';
import { createTally } from './tally.ts';

const kind = 'network-duplicate';
const always = 1000;
/** In thousandths, and luck spares all that is tried here. */
const hardlyEver = 0.001;

function begin({ isDue = true } = {}) {
  const tally = createTally();
  const chances = createChances({ tally, isDue: () => isDue });
  return { befalls: (rate: number) => chances.befalls(kind, rate, seededPrng(1)), chances, tally };
}

describe('what was drawn', () => {
  it('befalls by its rate, and is counted', () => {
    const { befalls, tally } = begin({ isDue: false });
    expect([befalls(always), befalls(always), befalls(0)]).toEqual([true, true, false]);
    expect(tally.counts.get(kind)).toBe(2);
  });

  it('befalls once when it is due and luck has spared everyone', () => {
    const { befalls, tally } = begin();
    expect([befalls(hardlyEver), befalls(hardlyEver), befalls(hardlyEver)]).toEqual([true, false, false]);
    expect(tally.counts.get(kind)).toBe(1);
  });

  it.each([
    ['before it is due', hardlyEver, { isDue: false }],
    ['in calm', 0, { isDue: true }],
  ])('is left to luck %s', (_, rate, begun) => expect(begin(begun).befalls(rate)).toBe(false));
});

describe('at the end', () => {
  it('what found no call to befall is told as such', () => {
    const { befalls, chances, tally } = begin({ isDue: false });
    befalls(hardlyEver);
    chances.end([kind]);
    expect([...tally.counts.keys()]).toEqual([`nothing-to-hit-${kind}`]);
  });

  it('what has happened is not', () => {
    const { befalls, chances, tally } = begin();
    befalls(hardlyEver);
    chances.end([kind]);
    expect([...tally.counts.keys()]).toEqual([kind]);
  });
});
