import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { HostsNeeded } from './hosts-needed.ts';

function needed(capacity: readonly number[], items: readonly (readonly number[])[]): number {
  const hosts = new HostsNeeded(
    capacity,
    capacity.map((_, i) => items.map((item) => item[i] ?? 0)),
  );
  for (const item of items) hosts.add(item, 1);
  return hosts.count();
}

/** Largest first, each on the first host where it fits. */
function firstFitDecreasing(capacity: readonly number[], items: readonly (readonly number[])[]): number {
  const free: number[][] = [];
  for (const item of items.toSorted((a, b) => (b[0] ?? 0) - (a[0] ?? 0))) {
    const host = free.find((left) => left.every((each, i) => each >= (item[i] ?? 0)));
    if (host) item.forEach((each, i) => (host[i] = (host[i] ?? 0) - each));
    else free.push(capacity.map((all, i) => all - (item[i] ?? 0)));
  }
  return free.length;
}

describe('hosts needed at least', () => {
  it.each([
    ['nothing', [[]], 0],
    ['what is asked for in all', [[3, 3, 3, 3]], 2], // 12 of 10
    ['large ones that cannot share', [[6, 6, 6]], 3],
    ['small ones that fit nowhere beside large ones', [[8, 8, 3, 3, 3, 3]], 4], // two alone, and 12 of 10
    [
      'the scarcest class',
      [
        [1, 1],
        [9, 9],
      ].map((row) => row),
      2,
    ],
  ])('are those of %s', (_, [first = [], second], count) => {
    const items = first.map((each, i) => (second ? [each, second[i] ?? 0] : [each]));
    expect(needed(second ? [10, 10] : [10], items)).toBe(count);
  });

  it('are those of a group of which a host may have only so many', () => {
    const hosts = new HostsNeeded([10], [[1]]);
    for (let i = 0; i < 5; i++) {
      hosts.add([1], 1);
      hosts.addToGroup(7, 2, 1);
    }
    expect(hosts.count()).toBe(3);
    hosts.add([1], -1);
    hosts.addToGroup(7, 2, -1);
    expect(hosts.count()).toBe(2);
  });

  it('are never more than a packing takes', () => {
    const item = fc.tuple(fc.integer({ min: 0, max: 10 }), fc.integer({ min: 0, max: 10 }));
    fc.assert(
      fc.property(fc.array(item, { maxLength: 40 }), (items) => {
        expect(needed([10, 10], items)).toBeLessThanOrEqual(firstFitDecreasing([10, 10], items));
      }),
      { numRuns: 500 },
    );
  });
});
