import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type AskedHead, type KnownPush, orderOf } from './webhook-order.ts';

interface Push {
  readonly sha: string;
  readonly before: string | undefined;
  readonly forced: boolean;
}

/** Delivers pushes one by one, and asks for the head where it is wanted. Returns the commits whose jobs are live at the end. */
function liveAfter(arrivals: readonly Push[], head: string | undefined): readonly string[] {
  const known: KnownPush[] = [];
  for (const push of arrivals) {
    const incoming = { ...push, chained: true };
    let order = orderOf(known, incoming);
    const seen = new Set(known.map(({ key }) => key));
    if (order.ask) order = orderOf(known, incoming, { sha: head, seen });
    for (const [i, other] of known.entries())
      if (order.supersedes.includes(other.key)) known[i] = { ...other, live: false };
    known.push({ ...push, key: push.sha, name: push.sha, live: order.supersededBy === undefined });
  }
  return known.filter(({ live }) => live).map(({ sha }) => sha);
}

const chainOf = (length: number, forced: readonly boolean[] = []): readonly Push[] =>
  Array.from({ length }, (_, i) => ({
    sha: `c${i + 1}`,
    before: i === 0 ? undefined : `c${i}`,
    forced: forced[i] ?? false,
  }));

const shuffled = fc
  .record({ length: fc.integer({ min: 1, max: 8 }), forced: fc.array(fc.boolean(), { maxLength: 8 }) })
  .chain(({ length, forced }) => {
    const chain = chainOf(length, forced);
    return fc.record({
      arrivals: fc.shuffledSubarray([...chain], { minLength: length, maxLength: length }),
      newest: fc.constant(`c${length}`),
    });
  });

describe('whatever the order of arrival, the job of the newest commit is the one that lives', () => {
  it('without asking the forge, when every push arrives', () =>
    fc.assert(
      fc.property(shuffled, ({ arrivals, newest }) => {
        expect(liveAfter(arrivals, undefined)).toEqual([newest]);
      }),
    ));

  it('asking the forge, when every push arrives', () =>
    fc.assert(
      fc.property(shuffled, ({ arrivals, newest }) => {
        expect(liveAfter(arrivals, newest)).toEqual([newest]);
      }),
    ));

  it('asking the forge, when some pushes never arrive', () =>
    fc.assert(
      fc.property(shuffled, fc.array(fc.boolean(), { maxLength: 8 }), ({ arrivals, newest }, kept) => {
        const some = arrivals.filter((push, i) => push.sha === newest || kept[i]);
        expect(liveAfter(some, newest)).toEqual([newest]);
      }),
    ));
});

const known = (sha: string, before: string | undefined, live = true): KnownPush => ({
  key: sha,
  name: `job-${sha}`,
  sha,
  before,
  live,
});

const asked = (sha: string | undefined, ...seen: string[]): AskedHead => ({ sha, seen: new Set(seen) });
const next = { sha: 'b', before: 'a', chained: true, forced: false };

describe('an incoming push b, after a,', () => {
  it.each<[string, readonly KnownPush[], Partial<typeof next>, AskedHead | undefined, object]>([
    ['alone', [], {}, undefined, { ask: false, supersedes: [], supersededBy: undefined }],
    ['follows a', [known('a', undefined)], {}, undefined, { ask: false, supersedes: ['a'], supersededBy: undefined }],
    ['follows a, which has ended', [known('a', undefined, false)], {}, undefined, { ask: false, supersedes: [] }],
    ['is late', [known('c', 'b')], {}, undefined, { ask: false, supersedes: [], supersededBy: 'job-c' }],
    ['is late, and c has ended', [known('c', 'b', false)], {}, undefined, { ask: false, supersededBy: 'job-c' }],
    [
      'is between two',
      [known('a', undefined), known('c', 'b')],
      {},
      undefined,
      { ask: false, supersedes: ['a'], supersededBy: 'job-c' },
    ],
    ['has a gap', [known('x', 'w')], {}, undefined, { ask: true, supersedes: [], supersededBy: undefined }],
    ['has a gap, and is the head', [known('x', 'w')], {}, asked('b', 'x'), { ask: false, supersedes: ['x'] }],
    ['has a gap, and x is the head', [known('x', 'w')], {}, asked('x', 'x'), { ask: false, supersededBy: 'job-x' }],
    [
      'has a gap, and the head is of neither',
      [known('x', 'w')],
      {},
      asked('z', 'x'),
      { ask: false, supersedes: [], supersededBy: undefined },
    ],
    [
      'has a gap, and the forge is silent: both run',
      [known('x', 'w')],
      {},
      asked(undefined, 'x'),
      { ask: false, supersedes: [], supersededBy: undefined },
    ],
    [
      'has no chain, and the forge is silent: by arrival',
      [known('x', 'w')],
      { before: undefined, chained: false },
      asked(undefined, 'x'),
      { ask: false, supersedes: ['x'], supersededBy: undefined },
    ],
    ['is asked for, and y came meanwhile', [known('x', 'w'), known('y', 'v')], {}, asked('b', 'x'), { ask: true }],
    ['is forced', [known('a', undefined)], { forced: true }, undefined, { ask: true, supersedes: ['a'] }],
    [
      'is forced, and the answer is of before the push',
      [known('a', undefined)],
      { forced: true },
      asked('a', 'a'),
      { ask: false, supersedes: ['a'], supersededBy: undefined },
    ],
    ['closes a circle', [known('a', 'b')], {}, undefined, { ask: true, supersedes: [], supersededBy: undefined }],
    ['closes a circle, and is the head', [known('a', 'b')], {}, asked('b', 'a'), { ask: false, supersedes: ['a'] }],
    ['closes a circle, and a is the head', [known('a', 'b')], {}, asked('a', 'a'), { supersededBy: 'job-a' }],
    [
      'closes a circle, and the forge is silent: by arrival',
      [known('a', 'b')],
      {},
      asked(undefined, 'a'),
      { supersedes: ['a'], supersededBy: undefined },
    ],
  ])('%s', (_, others, changes, head, expected) =>
    expect(orderOf(others, { ...next, ...changes }, head)).toMatchObject(expected),
  );
});
