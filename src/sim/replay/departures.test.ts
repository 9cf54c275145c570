import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { Departures } from './departures.ts';

it('everybody leaves once, by time and then by row', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 20 })), (times) => {
      const departures = new Departures();
      times.forEach((atS, row) => departures.push(atS, row));
      const left: (readonly [number, number])[] = [];
      while (departures.size > 0) left.push([departures.nextS, departures.pop()]);
      expect(left).toEqual(times.map((atS, row) => [atS, row] as const).toSorted((a, b) => a[0] - b[0] || a[1] - b[1]));
      expect(departures.nextS).toBe(Number.POSITIVE_INFINITY);
    }),
  );
});
