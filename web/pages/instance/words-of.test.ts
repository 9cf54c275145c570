import { expect, it } from 'vitest';
import { wordsOf } from './words-of.ts';

it.each([
  ['sh', ['sh']],
  ['  ls  -l /etc ', ['ls', '-l', '/etc']],
  [`sh -c 'echo "a b"'`, ['sh', '-c', 'echo "a b"']],
  ['grep "two words" f', ['grep', 'two words', 'f']],
  [`--name='a b'c`, ['--name=a bc']],
  ['""', ['']],
  ['', []],
])('the command line %s has these words', (text, words) => {
  expect(wordsOf(text)).toEqual(words);
});
