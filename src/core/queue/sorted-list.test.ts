import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { SortedList } from './sorted-list.ts';

it('holds what a sorted set would, whatever is added and taken', () => {
  const step = fc.record({ add: fc.boolean(), front: fc.boolean(), item: fc.integer({ min: 0, max: 300 }) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 600 }), (steps) => {
      const list = new SortedList<number>((a, b) => a - b);
      const model = new Set<number>();
      for (const { add, front, item } of steps) {
        const which = front && !add ? (list.first() ?? item) : item;
        if (add) expect(list.add(which)).toBe(!model.has(which));
        else expect(list.delete(which)).toBe(model.has(which));
        if (add) model.add(which);
        else model.delete(which);
        expect(list.has(item)).toBe(model.has(item));
      }
      expect([...list]).toEqual([...model].sort((a, b) => a - b));
      expect(list.size).toBe(model.size);
      expect(list.first()).toBe([...list][0]);
    }),
  );
});
