import { expect, it } from 'vitest';
import { heldOfOne } from './held-of-one.ts';

const small = { VCPU: 1 };
const large = { VCPU: 8 };

it('says who gives what, and the same again in the same words', () => {
  expect(heldOfOne('rp_1', small)).toEqual({ rp_1: { VCPU: 1 } });
  expect(heldOfOne('rp_1', large)).toEqual({ rp_1: { VCPU: 8 } });
  expect(heldOfOne('rp_2', large)).toEqual({ rp_2: { VCPU: 8 } });
  expect(heldOfOne('rp_1', small)).toBe(heldOfOne('rp_1', small));
});

it('leaves what was said before as it was', () => {
  const before = heldOfOne('rp_3', small);
  heldOfOne('rp_3', large);
  expect(before).toEqual({ rp_3: { VCPU: 1 } });
});

it('forgets providers in the course of time, and is right all the same', () => {
  for (let i = 0; i < 100_001; i++) heldOfOne(`many_${i}`, small);
  expect(heldOfOne('many_0', large)).toEqual({ many_0: { VCPU: 8 } });
  expect(heldOfOne('many_0', small)).toEqual({ many_0: { VCPU: 1 } });
});
