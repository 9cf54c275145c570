import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Ranking } from './ranking.ts';

const capacity = 256; // four blocks
const names = Array.from({ length: capacity }, (_, slot) => `h${(slot * 7) % capacity}`.padStart(4, '0'));

/** Slots by score, ties by name. */
function sorted(scores: ReadonlyMap<number, number>): number[] {
  return [...scores]
    .filter(([, score]) => score >= 0)
    .sort(([a, m], [b, n]) => n - m || ((names[a] ?? '') < (names[b] ?? '') ? -1 : 1))
    .map(([slot]) => slot);
}

describe('a ranking', () => {
  it('gives the order of a plain sort after any changes', () => {
    const change = fc.record({ slot: fc.nat(capacity - 1), score: fc.integer({ min: -2, max: 3 }) });
    fc.assert(
      fc.property(fc.array(change, { maxLength: 60 }), fc.nat(capacity), (changes, length) => {
        const ranking = new Ranking(capacity, names);
        const scores = new Map<number, number>();
        ranking.build(length, (slot) => (slot * 5) % 4);
        for (let slot = 0; slot < length; slot++) scores.set(slot, (slot * 5) % 4);
        for (const { slot, score } of changes) {
          ranking.set(slot, score);
          scores.set(slot, score);
          expect(ranking.best()).toBe(sorted(scores)[0] ?? -1);
        }
        expect([...ranking.inOrder()]).toEqual(sorted(scores));
        expect(ranking.fitCount).toBe(sorted(scores).length);
      }),
    );
  });

  it('of no hosts has no best', () => {
    const ranking = new Ranking(capacity, names);
    expect(ranking.best()).toBe(-1);
    expect([...ranking.inOrder()]).toEqual([]);
  });
});
