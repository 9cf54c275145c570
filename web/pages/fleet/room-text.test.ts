import { expect, it } from 'vitest';
import { fitsText, lossText } from './room-text.ts';

it('says how many more of a size fit', () => {
  expect(fitsText({ size: 'medium', more: 12 })).toBe('12 × medium');
  expect(fitsText({ size: 'tiny', more: 1000, atLeast: true })).toBe('1000+ × tiny');
});

const none = { losses: 1, worst: [] };
const bad = { hosts: ['h1'], instances: 5, unplaced: 2, examples: [] };

it.each([
  [{ ...none, checked: 0, of: 0, survived: 0 }, 'No host has instances.'],
  [{ ...none, checked: 3, of: 3, survived: 3 }, 'Everything would fit elsewhere: 3 hosts were tried.'],
  [{ ...none, checked: 3, of: 9, survived: 3 }, 'Everything would fit elsewhere: the 3 fullest of 9 hosts were tried.'],
  [
    { losses: 1, checked: 3, of: 3, survived: 2, worst: [bad] },
    'Not everything would fit elsewhere in 1 case: 3 hosts were tried. Worst: without h1, 2 of 5 instances find no place.',
  ],
])('says whether the loss of a host is survived', (loss, text) => {
  expect(lossText(loss)).toBe(text);
});
