import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { loneDesk } from './desks.ts';
import { Leaders } from './leaders.ts';

const capacity = 512;
const names = Array.from({ length: capacity }, (_, slot) => `h${String((slot * 7) % capacity).padStart(4, '0')}`);

/** Slots by score, ties by name. */
function sorted(scores: readonly number[]): number[] {
  return scores
    .map((score, slot) => ({ score, slot }))
    .filter(({ score }) => score >= 0)
    .sort((a, b) => b.score - a.score || ((names[a.slot] ?? '') < (names[b.slot] ?? '') ? -1 : 1))
    .map(({ slot }) => slot);
}

describe('the leaders', () => {
  it('are the first of a plain sort, after any changes in any portions', () => {
    const change = fc.record({ slot: fc.nat(capacity - 1), score: fc.integer({ min: -2, max: 5 }) });
    const portions = fc.array(fc.array(change, { maxLength: 40 }), { maxLength: 20 });
    fc.assert(
      fc.property(portions, fc.integer({ min: 0, max: capacity }), fc.nat(7), (plays, length, spread) => {
        const scores = Array.from({ length }, (_, slot) => ((slot * 5) % (spread + 2)) - 1);
        const leaders = new Leaders(loneDesk(capacity), names, (slot) => scores[slot] ?? -1);
        leaders.build(length);
        for (const changes of plays) {
          const kept = changes.filter(({ slot }) => slot < length);
          // All have changed before the first update, as when a shape catches up.
          for (const { slot, score } of kept) scores[slot] = score;
          for (const slot of new Set(kept.map((each) => each.slot))) leaders.update(slot, scores[slot] ?? -1);
          const order = sorted(scores);
          expect(leaders.fitCount).toBe(order.length);
          expect(leaders.best(length)).toBe(order[0] ?? -1);
          const first = [...leaders.inOrder(length)];
          expect(first).toEqual(order.slice(0, first.length));
          expect(leaders.areAll).toBe(first.length === order.length);
        }
      }),
    );
  });

  it('are found anew when all of them have gone', () => {
    const scores = Array.from({ length: capacity }, (_, slot) => slot);
    const leaders = new Leaders(loneDesk(capacity), names, (slot) => scores[slot] ?? -1);
    leaders.build(capacity);
    for (let slot = capacity - 1; slot > 5; slot--) {
      scores[slot] = -1;
      leaders.update(slot, -1);
      expect(leaders.best(capacity)).toBe(slot - 1);
    }
    expect([...leaders.inOrder(capacity)]).toEqual([5, 4, 3, 2, 1, 0]);
  });

  it('of no hosts are none', () => {
    const leaders = new Leaders(loneDesk(capacity), names, () => -1);
    leaders.build(0);
    expect(leaders.best(0)).toBe(-1);
    expect([...leaders.inOrder(0)]).toEqual([]);
  });
});
