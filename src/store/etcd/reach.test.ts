import { describe, expect, test } from 'vitest';
import { reachOf } from './reach.ts';

const keysOf = (from: number, to: number, radix: number): string[] =>
  Array.from({ length: to - from + 1 }, (_, i) => `instances/inst_${(from + i).toString(radix).padStart(8, '0')}.1`);

describe('keys that count, whatever the digits: the next page and a little more', () => {
  test.each([
    [0, 9_999, 10],
    [10_000, 19_999, 10],
    [90_000, 99_999, 10],
    [1_234, 5_678, 16],
    [123_456, 133_455, 32],
  ])('%i to %i in base %i', (from, to, radix) => {
    const reach = reachOf(keysOf(from, to, radix));
    const count = to - from + 1;
    const [next = '', tooFar = ''] = [
      keysOf(to + count, to + count, radix)[0],
      keysOf(to + 3 * count, to + 3 * count, radix)[0],
    ];
    expect(reach > next).toBe(true);
    expect(reach < tooFar).toBe(true);
  });
});

test('a page of several kinds ends somewhere after it', () => {
  expect(reachOf(['allocations/a', 'events/b', 'hosts/c']) > 'hosts/c').toBe(true);
});

test('a page of one key reaches a little further', () => {
  const reach = reachOf(['hosts/h1']);
  expect(reach > 'hosts/h1' && reach < 'hosts/h2').toBe(true);
});

test('what is full ends with all that begins alike', () => {
  expect(reachOf(['a/00000000', 'a/99999999'])).toBe('a/\x7f');
});
