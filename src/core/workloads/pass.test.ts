// What one look at a workload decides, as a table; and many looks, with copies that become ready or fail by chance.

import { describe, expect, it } from 'vitest';
import { seededPrng } from '../../base/prng.ts';
import type { WorkloadStrategy } from '../../api/resources/workload.ts';
import type { Copy } from './copy.ts';
import { boundsOf, passOf, type PassInput } from './pass.ts';
import { victims } from './victims.ts';

const strategy: WorkloadStrategy = {
  type: 'RollingUpdate',
  maxSurge: '25%',
  maxUnavailable: '25%',
  minHealthyMs: 10_000,
  progressDeadlineMs: 600_000,
  autoRevert: true,
};

function copy(changes: Partial<Copy> & { readonly id: string }): Copy {
  return {
    key: `instances/default/${changes.id}`,
    ordinal: 0,
    revision: 1,
    ready: true,
    readyAtMs: 0,
    ...{ over: false, lost: false, leaving: false, hostReady: true, hostUp: true, protected: false },
    host: 'h1',
    ...{ cost: 0, restarts: 0, createdAtMs: 0 },
    ...changes,
  };
}

const many = (count: number, changes: Partial<Copy> = {}): Copy[] =>
  Array.from({ length: count }, (_, ordinal) =>
    copy({ id: `c${ordinal}-${changes.revision ?? 1}`, ordinal, ...changes }),
  );

const input = (changes: Partial<PassInput>): PassInput => ({
  ...{ copies: [], wanted: 3, revision: 1, strategy, paused: false, nowMs: 1_000_000 },
  notBeforeMs: () => undefined,
  ...changes,
});

it('removes no more copies that are not available while others leave', () => {
  const hidden = many(4, { ready: false });
  const strategyOfOne = { ...strategy, maxSurge: 0, maxUnavailable: 1 };
  const asked = { wanted: 4, revision: 2, strategy: strategyOfOne };
  expect(passOf(input({ ...asked, copies: hidden })).remove).toHaveLength(1);
  const [first, ...others] = hidden;
  if (!first) throw new Error('there are four');
  expect(passOf(input({ ...asked, copies: [{ ...first, leaving: true }, ...others] }))).toMatchObject({
    create: [],
    remove: [],
  });
});

describe('the bounds of an update', () => {
  it.each([
    ['25%', '25%', 4, { surge: 1, unavailable: 1 }],
    ['25%', '25%', 1, { surge: 1, unavailable: 0 }],
    ['25%', '25%', 3, { surge: 1, unavailable: 0 }],
    [0, '25%', 1, { surge: 0, unavailable: 1 }],
    ['1000%', 0, 2, { surge: 20, unavailable: 0 }],
    [1, 5, 2, { surge: 1, unavailable: 2 }],
    [0, '25%', 0, { surge: 0, unavailable: 1 }],
  ])('surge %s and unavailable %s of %d', (maxSurge, maxUnavailable, wanted, bounds) => {
    expect(boundsOf({ maxSurge, maxUnavailable }, wanted)).toEqual(bounds);
  });
});

describe('a look at a workload', () => {
  it.each<[string, Partial<PassInput>, { create: number[]; remove: string[] }]>([
    ['that is new', {}, { create: [0, 1, 2], remove: [] }],
    ['that is as wanted', { copies: many(3) }, { create: [], remove: [] }],
    ['with too many', { copies: many(3), wanted: 2 }, { create: [], remove: ['c0-1'] }],
    ['scaled to nothing', { copies: many(2), wanted: 0 }, { create: [], remove: ['c0-1', 'c1-1'] }],
    [
      'of which one failed',
      { copies: [...many(2), copy({ id: 'x', ordinal: 2, over: true, ready: false })] },
      { create: [2], remove: ['x'] },
    ],
    ['whose free ordinal is in the middle', { copies: many(3).slice(1) }, { create: [0], remove: [] }],
    ['that begins an update', { copies: many(4), wanted: 4, revision: 2 }, { create: [4], remove: ['c0-1'] }],
    ['in an update of one copy', { copies: many(1), wanted: 1, revision: 2 }, { create: [1], remove: [] }],
    [
      'in an update, scaled to nothing',
      { copies: many(2), wanted: 0, revision: 2 },
      { create: [], remove: ['c0-1', 'c1-1'] },
    ],
    [
      'with old copies that are not ready',
      { copies: many(2, { ready: false }), wanted: 2, revision: 2 },
      { create: [2], remove: [] },
    ],
    [
      'that is paused in an update',
      { copies: many(2), wanted: 3, revision: 2, paused: true },
      { create: [2], remove: [] },
    ],
    [
      'that creates anew, with old ones',
      { copies: many(2), revision: 2, strategy: { ...strategy, type: 'Recreate' } },
      { create: [], remove: ['c0-1', 'c1-1'] },
    ],
    [
      'that creates anew, while old ones leave',
      { copies: many(2, { leaving: true }), revision: 2, strategy: { ...strategy, type: 'Recreate' } },
      { create: [], remove: [] },
    ],
    [
      'that creates anew, without old ones',
      { copies: [], revision: 2, strategy: { ...strategy, type: 'Recreate' } },
      { create: [0, 1, 2], remove: [] },
    ],
    [
      'of which one leaves a silent host',
      { copies: [...many(2), copy({ id: 'x', ordinal: 2, leaving: true, hostReady: false, hostUp: false })] },
      { create: [2], remove: [] },
    ],
    [
      'that grows again while a copy leaves, without surge',
      {
        copies: [...many(2), copy({ id: 'x', ordinal: 2, leaving: true })],
        strategy: { ...strategy, maxSurge: 0, maxUnavailable: 1 },
      },
      { create: [], remove: [] },
    ],
    ['with a protected surplus', { copies: many(2, { protected: true }), wanted: 1 }, { create: [], remove: [] }],
  ])('%s', (_, changes, expected) => {
    const { create, remove } = passOf(input(changes));
    expect({ create, remove: remove.map(({ id }) => id).toSorted() }).toEqual(expected);
  });

  it('waits with an ordinal that failed lately, and says how long', () => {
    const { create, againMs } = passOf(input({ notBeforeMs: (ordinal) => (ordinal === 1 ? 1_005_000 : undefined) }));
    expect([create, againMs]).toEqual([[0, 2], 5_000]);
  });

  it('looks again when a copy has been ready for long enough', () => {
    const { counts, againMs } = passOf(input({ copies: many(3, { readyAtMs: 993_000 }) }));
    expect([counts.available, counts.ready, againMs]).toEqual([0, 3, 3_000]);
  });
});

describe('victims', () => {
  it.each<[string, Copy[], string[]]>([
    ['without a host', [copy({ id: 'a' }), { ...copy({ id: 'b' }), host: undefined }], ['b', 'a']],
    ['on a host that is not ready', [copy({ id: 'a' }), copy({ id: 'b', hostReady: false })], ['b', 'a']],
    ['that are not ready', [copy({ id: 'a' }), copy({ id: 'b', ready: false })], ['b', 'a']],
    ['of an old revision', [copy({ id: 'a', revision: 2 }), copy({ id: 'b' })], ['b', 'a']],
    ['that cost less', [copy({ id: 'a', cost: 1 }), copy({ id: 'b', cost: -1 })], ['b', 'a']],
    [
      'on a crowded host, counted anew',
      [
        copy({ id: 'a', host: 'h1' }),
        copy({ id: 'b', host: 'h2' }),
        copy({ id: 'c', host: 'h1' }),
        copy({ id: 'd', host: 'h1' }),
      ],
      ['a', 'c', 'b'],
    ],
    [
      'in a crowded zone, counted again',
      [
        copy({ id: 'a', host: 'h1', zone: 'east' }),
        copy({ id: 'b', host: 'h2', zone: 'west' }),
        copy({ id: 'c', host: 'h3', zone: 'west' }),
      ],
      ['b', 'a', 'c'],
    ],
    [
      'ready for less time, in powers of two',
      [copy({ id: 'a', readyAtMs: 100_000, restarts: 1 }), copy({ id: 'b', readyAtMs: 900_000 })],
      ['b', 'a'],
    ],
    [
      'that restarted more, of those ready for nearly as long',
      [copy({ id: 'a', readyAtMs: 10_000 }), copy({ id: 'b', readyAtMs: 0, restarts: 1 })],
      ['b', 'a'],
    ],
    ['that restarted more', [copy({ id: 'a' }), copy({ id: 'b', restarts: 1 })], ['b', 'a']],
    ['that are newer', [copy({ id: 'a', createdAtMs: 1 }), copy({ id: 'b', createdAtMs: 2 })], ['b', 'a']],
    ['by id, at last', [copy({ id: 'b' }), copy({ id: 'a' })], ['a', 'b']],
  ])('those %s go first', (_, copies, order) => {
    for (let count = 1; count < copies.length; count++)
      expect(victims(copies, { count, revision: 2, nowMs: 1_000_000 }).map(({ id }) => id)).toEqual(
        order.slice(0, count),
      );
  });
});

/** Copies become ready, fail and leave by chance; the wanted number and the revision change. */
function play(seed: number, fails: boolean) {
  const prng = seededPrng(seed);
  let copies: Copy[] = [];
  let [nowMs, revision, wanted, made, quiet] = [0, 1, 1 + prng.below(6), 0, 0];
  const own = { ...strategy, maxSurge: prng.below(3), maxUnavailable: 1 + prng.below(2), minHealthyMs: 1_000 };
  const faults: string[] = [];
  for (let step = 0; step < 400 && quiet < 5; step++) {
    nowMs += 500;
    if (step < 200 && prng.below(25) === 0) revision += 1;
    if (step < 200 && prng.below(40) === 0) wanted = prng.below(7);
    const settling = step >= 200 && copies.every((each) => each.revision === revision);
    const pass = passOf(input({ copies, wanted, revision, strategy: own, nowMs }));
    quiet = pass.create.length + pass.remove.length === 0 && step > 260 ? quiet + 1 : 0;
    const availableBefore = pass.counts.available;
    const { surge, unavailable } = boundsOf(own, wanted);
    const gone = new Set(pass.remove);
    const removedAvailable = pass.remove.filter((each) => each.ready && nowMs >= each.readyAtMs + 1_000).length;
    if (!settling && removedAvailable > 0 && availableBefore - removedAvailable < wanted - unavailable)
      faults.push(`too few at step ${step}`);
    copies = copies.map((each) => (gone.has(each) ? { ...each, leaving: true } : each));
    if (pass.create.length > 0 && copies.length + pass.create.length > wanted + surge && pass.counts.copies > wanted)
      faults.push(`too many at step ${step}`);
    for (const ordinal of pass.create)
      copies.push(copy({ id: `n${made++}`, ordinal, revision, ready: false, readyAtMs: 0, createdAtMs: nowMs }));
    copies = copies
      .filter((each) => !each.leaving || prng.below(3) > 0)
      .map((each) =>
        !each.ready && !each.over && prng.below(2) === 0 ? { ...each, ready: true, readyAtMs: nowMs } : each,
      )
      .map((each) => (fails && step < 200 && prng.below(30) === 0 ? { ...each, ready: false, over: true } : each));
  }
  const live = copies.filter((each) => !each.leaving);
  return {
    faults,
    end: live.map((each) => each.revision).toSorted(),
    expected: Array.from({ length: wanted }, () => revision),
  };
}

describe('many looks', () => {
  it.each([false, true])('keep the bounds and end as wanted (copies fail: %s)', (fails) => {
    for (let seed = 1; seed <= 150; seed++) {
      const { faults, end, expected } = play(seed, fails);
      expect({ seed, faults, end }).toEqual({ seed, faults: [], end: expected });
    }
  });
});
