// The order must always agree with a look at everything.

import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { commitPlan, testCache, testInstance } from '../../testing.ts';
import { committedByAge } from './committed-by-age.ts';
import { keys } from '../keys.ts';

const change = fc.record({
  name: fc.constantFrom('u', 'v', 'x', 'y', 'z'),
  createdAtMs: fc.nat({ max: 3 }),
  removes: fc.boolean(),
});

it('has all of the kind, the newest first, whatever was created and deleted, before and after it was made', () => {
  fc.assert(
    fc.property(fc.array(change, { maxLength: 30 }), fc.nat({ max: 30 }), (changes, madeAt) => {
      const cache = testCache([]);
      for (const [i, { name, createdAtMs, removes }] of changes.entries()) {
        if (i === madeAt) committedByAge(cache).count('instance');
        const key = keys.instance('default', name);
        const before = cache.get('instance', key);
        if (removes && before === undefined) continue;
        const { metadata, ...rest } = testInstance(name);
        const made = before?.value.metadata ?? { ...metadata, id: `inst_${i}`, createdAtMs };
        const value = removes ? null : { ...rest, metadata: made };
        commitPlan(cache, { changes: [{ key, ifRevision: before?.revision ?? 0, value }] });
      }
      const all = [...cache.listCommitted('instance')]
        .map(({ value: { metadata } }) => metadata)
        .sort((a, b) => b.createdAtMs - a.createdAtMs || (a.id < b.id ? 1 : -1))
        .map(({ id }) => id);
      const order = committedByAge(cache);
      const idsFrom = (offset: number): string[] =>
        [...order.list('instance', offset)].map(({ value }) => value.metadata.id);
      expect(idsFrom(0)).toEqual(all);
      expect(idsFrom(2)).toEqual(all.slice(2));
      expect(order.count('instance')).toBe(all.length);
    }),
  );
});
