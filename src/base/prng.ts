// A small seeded generator, so that a seed replays a whole run. Not for secrets: those come from base/system.ts.

/** Integers only; every draw advances the state. */
export interface Prng {
  /** An integer in [0, 2^32). */
  uint32(): number;
  /** An integer in [0, limit), limit in 1..2^32. */
  below(limit: number): number;
  /** True in `numerator` of `denominator` draws. */
  chance(numerator: number, denominator: number): boolean;
  /** An independent generator; using it does not affect this one. */
  split(): Prng;
}

/** sfc32 (Chris Doty-Humphrey, PractRand), seeded from one 32-bit number and a label. */
export function seededPrng(seed: number, label = ''): Prng {
  let a = 0x9e3779b9 ^ seed;
  let b = 0x243f6a88;
  let c = 0xb7e15162;
  let counter = 1;
  for (let i = 0; i < label.length; i++) b = Math.imul(b ^ label.charCodeAt(i), 0x01000193);

  const uint32 = (): number => {
    const sum = (((a + b) | 0) + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (c << 21) | (c >>> 11);
    c = (c + sum) | 0;
    return sum >>> 0;
  };
  for (let i = 0; i < 12; i++) uint32(); // the first outputs still show the seed

  const below = (limit: number): number => Math.floor((uint32() / 0x1_0000_0000) * limit);
  return {
    uint32,
    below,
    chance: (numerator, denominator) => below(denominator) < numerator,
    split: () => seededPrng(uint32()),
  };
}
