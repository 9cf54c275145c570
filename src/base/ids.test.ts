import { describe, expect, it } from 'vitest';
import { newId } from './ids.ts';
import { seededPrng } from './prng.ts';

describe('ids', () => {
  it('bear their kind and sort by birth, also within one millisecond', () => {
    const prng = seededPrng(1);
    const times = [
      1_800_000_000_000,
      1_800_000_000_000,
      1_800_000_000_001,
      ...Array<number>(2_000).fill(1_800_000_000_002),
    ];
    const ids = times.map((nowMs) => newId('inst', nowMs, prng));
    expect(ids.every((id) => /^inst_[0-9a-hjkmnp-tv-z]{26}$/.test(id))).toBe(true);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.toSorted()).toEqual(ids);
  });

  it('are of different generators different, also in one millisecond', () => {
    const of = (seed: number) => newId('evt', 1_800_000_000_003 + seed, seededPrng(seed)).slice(-16);
    expect(of(1)).not.toBe(of(2));
  });
});
