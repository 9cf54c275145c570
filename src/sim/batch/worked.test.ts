import { describe, expect, it } from 'vitest';
import type { SimResult } from '../simulate.ts';
import { createSum, idleIn } from './worked.ts';

const run = (changes: Partial<SimResult> = {}): SimResult => ({
  seed: 1,
  commitHash: 'a',
  traceHash: 'b',
  commits: 200,
  events: 3000,
  virtualMs: 90_000,
  instancesRun: 8,
  faults: {},
  drawn: [],
  trace: [],
  ...changes,
});
const sumOf = (...runs: readonly SimResult[]) => {
  const sum = createSum();
  for (const each of runs) sum.add(each);
  return sum;
};

describe('a run', () => {
  it('that did its work is one', () => expect(createSum().idleRun(run(), true)).toBeUndefined());

  it.each([
    ['nothing was written', { commits: 0 }, 'nothing happened in it'],
    ['nothing happened', { events: 0 }, 'nothing happened in it'],
    ['hardly anything was written', { commits: 3 }, 'hardly anything happened in it: 3 commits'],
    [
      'what it drew did not happen',
      { drawn: ['server-crash', 'partition'], faults: { partition: 1 } },
      'it drew server-crash, and none of that happened',
    ],
    ['it was over at once', { virtualMs: 2000 }, 'in 2 s'],
  ])('proves nothing when %s', (_, changes, told) => {
    expect(createSum().idleRun(run(changes), true)).toContain(told);
  });

  it('in which no guest ran to be hit is one', () => {
    const changes = { drawn: ['guest-crash'], faults: { 'nothing-to-hit-guest-crash': 1 } };
    expect(createSum().idleRun(run(changes), true)).toBeUndefined();
  });

  it('that was narrowed may be short, but not empty', () => {
    expect(createSum().idleRun(run({ commits: 3, virtualMs: 2000 }), false)).toBeUndefined();
    expect(createSum().idleRun(run({ commits: 0 }), false)).toBe('nothing happened in it');
  });
});

describe('a batch', () => {
  it('of twenty runs that worked proves something', () => {
    expect(idleIn(sumOf(...Array.from({ length: 20 }, () => run())), 20)).toEqual([]);
  });

  it('of no run proves nothing', () => expect(idleIn(createSum(), 0)).toEqual(['nothing was run']));

  it('in which hardly anything ran proves nothing', () => {
    const idle = idleIn(sumOf(...Array.from({ length: 20 }, () => run({ commits: 10, instancesRun: 0 }))), 20);
    expect(idle).toEqual([
      '200 commits in 20 seeds are too few; 60 each are asked for',
      '0 instances ran in 20 seeds; 3 each are asked for',
    ]);
  });

  const guestCrash = 'guest-crash';
  const place = 'unusual-full-pass-early';
  const told = (kind: string, inVain: number, runs: number) => [
    `"${kind}" found nothing to hit in ${inVain} of the ${runs} runs that drew it`,
  ];
  it.each([
    ['a fault now and then finds nothing to hit', guestCrash, 15, 40, []],
    ['a fault finds nothing to hit too often', guestCrash, 16, 40, told(guestCrash, 16, 40)],
    ['a fault hardly finds anything to hit, in a small one', guestCrash, 9, 10, told(guestCrash, 9, 10)],
    ['a place is seldom passed', place, 25, 40, []],
    ['a place is hardly ever passed', place, 30, 40, told(place, 30, 40)],
  ])('in which %s', (_, kind, inVain, count, faults) => {
    const runs = Array.from({ length: count }, (_each, i) =>
      run({ drawn: [kind], faults: { [i < inVain ? `nothing-to-hit-${kind}` : kind]: 1 } }),
    );
    expect(idleIn(sumOf(...runs), count)).toEqual(faults);
  });

  it('in which a fault was drawn again and again and never happened proves nothing of it', () => {
    const runs = Array.from({ length: 20 }, () =>
      run({ drawn: ['server-crash', 'host-paused'], faults: { 'host-paused': 2 } }),
    );
    expect(idleIn(sumOf(...runs), 20)).toEqual(['"server-crash" was drawn by 20 runs and never happened']);
  });

  it('of a hundred must have seen everything', () => {
    const idle = idleIn(sumOf(...Array.from({ length: 100 }, () => run())), 100);
    expect(idle).toContain('"server-crash" never happened');
    expect(idle).toContain('"watch-compacted" never happened');
  });
});
