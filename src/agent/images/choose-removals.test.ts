import { describe, expect, it } from 'vitest';
import { type CachedFile, chooseRemovals } from './choose-removals.ts';

const file = (path: string, usedAtMs: number, more: Partial<CachedFile> = {}): CachedFile => ({
  path,
  allocatedBytes: 10,
  usedAtMs,
  guests: 0,
  kept: false,
  ...more,
});

describe('what an image cache over its budget removes', () => {
  const rows: readonly (readonly [string, readonly CachedFile[], number, number, string[]])[] = [
    ['nothing within the budget', [file('a', 1), file('b', 2)], 20, 0, []],
    ['the one unused the longest', [file('a', 3), file('b', 1), file('c', 2)], 20, 0, ['b']],
    ['as many as needed, oldest first', [file('a', 3), file('b', 1), file('c', 2)], 10, 0, ['b', 'c']],
    ['none that a guest lies upon', [file('a', 1, { guests: 1 }), file('b', 2)], 10, 0, ['b']],
    ['none that is kept', [file('a', 1, { kept: true }), file('b', 2)], 10, 0, ['b']],
    ['only what it may, though that is not enough', [file('a', 1, { guests: 2 }), file('b', 2)], 0, 0, ['b']],
    ['more when half downloads take room, too', [file('a', 1), file('b', 2)], 20, 5, ['a']],
    ['nothing of a budget of nothing when there is nothing', [], 0, 0, []],
  ];
  it.each(rows)('is %s', (_, files, bytesMax, otherBytes, expected) => {
    expect(chooseRemovals(files, { bytesMax, otherBytes }).map(({ path }) => path)).toEqual(expected);
  });
});
