import { describe, expect, it } from 'vitest';
import { system } from './system.ts';

/** Through this many promises, some of which only wait for the next tick. */
async function passThrough(hops: number): Promise<void> {
  for (let hop = 0; hop < hops; hop++) {
    if (hop % 7 === 0) await new Promise<void>((resolve) => process.nextTick(resolve));
    else await Promise.resolve();
  }
}

it('gives back memory that it does not use, and goes on', () => {
  let unused: number[][] | undefined = Array.from({ length: 100 }, () => Array.from({ length: 10_000 }, (_, i) => i));
  expect(unused).toHaveLength(100);
  unused = undefined;
  system.releaseUnused();
  expect(unused).toBeUndefined();
});

describe.each([
  ['a turn', () => system.turn],
  ['one turn of many', () => system.turns()],
])('%s', (_, begin) => {
  it('lets all promises that are ready, and all that those make ready, have their say', async () => {
    const turn = begin();
    for (let round = 0; round < 200; round++) {
      let through = false;
      void passThrough(round).then(() => {
        through = true;
      });
      await turn();
      expect(through, `round ${round}`).toBe(true);
    }
  });

  it('is one again after a while without', async () => {
    const turn = begin();
    for (let round = 0; round < 5; round++) {
      await turn();
      await new Promise((resolve) => setTimeout(resolve, 1));
      let through = false;
      void passThrough(50).then(() => {
        through = true;
      });
      await turn();
      expect(through).toBe(true);
    }
  });
});
