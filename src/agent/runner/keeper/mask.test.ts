import { expect, it } from 'vitest';
import { maskOf } from './mask.ts';

const masked = (values: readonly string[], text: string): string => maskOf(values)(Buffer.from(text)).toString();

it.each([
  ['none', [], 'as it was', 'as it was'],
  ['one', ['hunter22'], 'password=hunter22.', 'password=***.'],
  ['several times', ['hunter22'], 'hunter22hunter22 hunter22', '****** ***'],
  ['a value that is part of another', ['abcd', 'abcdefgh'], 'abcdefgh abcd', '*** ***'],
  ['each line of a value', ['first line\nsecond line\n'], 'x second line y', 'x *** y'],
  ['other than ASCII', ['pässwörd'], 'is pässwörd', 'is ***'],
  ['nothing for short values', ['abc', ''], 'abc abc', 'abc abc'],
  ['characters of patterns', ['a.c$^*'], 'a.c$^* abcd', '*** abcd'],
  ['not what is encoded', ['hunter22'], Buffer.from('hunter22').toString('base64'), 'aHVudGVyMjI='],
])('masks %s', (_, values, text, expected) => expect(masked(values, text)).toBe(expected));
