import { expect, it } from 'vitest';
import { describeFits } from './fit.ts';

const short = { fits: false, resourceClass: 'VCPU', asked: 4, free: 8 } as const;

it.each([
  ['BelowMinUnit', 6, '4 CPUs asked, but here at least 6 at once'],
  ['AboveMaxUnit', 2, '4 CPUs asked, but here at most 2 at once'],
  ['NotAStep', 3, '4 CPUs asked, but here only in steps of 3'],
] as const)('names the limit of %s', (refusal, limit, message) => {
  expect(describeFits([{ ...short, refusal, limit }])).toBe(message);
});

it('speaks of one CPU as of one', () => {
  expect(describeFits([{ ...short, asked: 1, free: 0, refusal: 'Insufficient' }])).toBe(
    '1 CPU asked, 0 free: needs 1 more',
  );
});
