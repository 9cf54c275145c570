import { expect, it } from 'vitest';
import { KeysByGroup } from './few-keys.ts';

it('keeps no key, one or several of a group', () => {
  const keys = new KeysByGroup();
  expect(keys.of('a')).toEqual([]);
  keys.add('a', '1');
  expect(keys.of('a')).toEqual(['1']);
  keys.add('a', '2');
  keys.add('b', '3');
  expect(keys.of('a')).toEqual(['1', '2']);
  keys.add('a', '4');
  keys.delete('a', '4');
  keys.delete('a', '1');
  keys.delete('a', '9');
  expect(keys.of('a')).toEqual(['2']);
  keys.delete('a', '2');
  expect(keys.of('a')).toEqual([]);
  keys.delete('b', '9');
  expect(keys.of('b')).toEqual(['3']);
});
