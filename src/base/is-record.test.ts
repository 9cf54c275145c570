import { expect, it } from 'vitest';
import { isRecord } from './is-record.ts';

it.each([
  [{}, true],
  [{ a: 1 }, true],
  [Object.create(null), true],
  [[], false],
  [null, false],
  [undefined, false],
  ['text', false],
  [5, false],
])('%o is a record: %s', (value, is) => expect(isRecord(value)).toBe(is));
