import { expect, it } from 'vitest';
import * as fc from 'fast-check';
import { XdrError, xdrReader, xdrWriter } from './xdr.ts';

it.each([
  ['an int', xdrWriter().int(-2), 'fffffffe'],
  ['an unsigned int', xdrWriter().uint(4_294_967_295), 'ffffffff'],
  ['a string of four', xdrWriter().string('abcd'), '0000000461626364'],
  ['a string of five, padded', xdrWriter().string('abcde'), '000000056162636465000000'],
  ['an empty string', xdrWriter().string(''), '00000000'],
  ['a string that is missing', xdrWriter().maybeString(undefined), '00000000'],
  ['a string that is there', xdrWriter().maybeString('a'), '000000010000000161000000'],
  ['opaque bytes without their length', xdrWriter().opaque(Buffer.from('abc')), '61626300'],
])('%s is written as RFC 4506 says', (_, writer, hex) => {
  expect(writer.bytes().toString('hex')).toBe(hex);
});

it('reads what it has written', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }),
      fc.string(),
      fc.option(fc.string(), { nil: undefined }),
      (number, text, maybe) => {
        const reader = xdrReader(xdrWriter().int(number).string(text).maybeString(maybe).uint(7).bytes());
        const read = [reader.int(), reader.string(), reader.maybeString(), reader.uint()];
        expect(read).toEqual([
          number,
          Buffer.from(text).toString(),
          maybe === undefined ? undefined : Buffer.from(maybe).toString(),
          7,
        ]);
      },
    ),
  );
});

it.each([
  ['a string longer than what is there', '0000000961', (hex: Buffer) => xdrReader(hex).string()],
  ['more items than there can be', '7fffffff', (hex: Buffer) => xdrReader(hex).array((from) => from.int())],
  ['half a word', 'ffff', (hex: Buffer) => xdrReader(hex).int()],
])('refuses %s', (_, hex, read) => {
  expect(() => read(Buffer.from(hex, 'hex'))).toThrow(XdrError);
});
