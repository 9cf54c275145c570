import { createHash } from 'node:crypto';
import { assert, property, string } from 'fast-check';
import { expect, it } from 'vitest';
import { sha256 } from './sha256.ts';

const theirs = (text: string): string => createHash('sha256').update(text).digest('hex');

it.each([0, 1, 55, 56, 63, 64, 65, 119, 120, 1_000])('agrees with the machine about %i characters', (length) => {
  expect(sha256('a'.repeat(length))).toBe(theirs('a'.repeat(length)));
});

it('agrees with the machine about any text', () => {
  assert(
    property(string({ unit: 'grapheme', maxLength: 300 }), (text) => {
      expect(sha256(text)).toBe(theirs(text));
    }),
  );
});
