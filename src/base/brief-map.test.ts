import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { BriefMap } from './brief-map.ts';

it('holds what any Map would, in the same order', () => {
  const key = fc.integer({ min: 0, max: 9 });
  const step = fc.record({ key, value: fc.integer(), goes: fc.boolean() });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
      const brief = new BriefMap<number, number>();
      const plain = new Map<number, number>();
      for (const each of steps) {
        if (each.goes) expect(brief.delete(each.key)).toBe(plain.delete(each.key));
        else {
          brief.set(each.key, each.value);
          plain.set(each.key, each.value);
        }
        expect(brief.get(each.key)).toBe(plain.get(each.key));
        expect(brief.has(each.key)).toBe(plain.has(each.key));
        expect(brief.size).toBe(plain.size);
      }
      expect([...brief]).toEqual([...plain]);
      expect([...brief.keys()]).toEqual([...plain.keys()]);
      expect([...brief.values()]).toEqual([...plain.values()]);
    }),
  );
});

it('may be emptied while it is walked through', () => {
  const brief = new BriefMap<number, number>();
  for (let i = 0; i < 200; i++) brief.set(i, i);
  const seen: number[] = [];
  for (const [key] of brief) {
    seen.push(key);
    brief.delete(key);
  }
  expect(seen).toHaveLength(200);
  expect(brief.size).toBe(0);
});
