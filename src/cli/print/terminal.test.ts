import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { consoleFilter, visible, visibleInJson } from './terminal.ts';

const esc = '\u001b';

describe('foreign text', () => {
  it.each([
    ['plain', 'web-1 änderung 日本', 'web-1 änderung 日本'],
    ['an escape sequence', `${esc}[2Jx`, '\\x1b[2Jx'],
    ['a C1 control', '\u009b2J', '\\x9b2J'],
    ['a new line', 'a\nb', 'a\\x0ab'],
    ['a right-to-left override', 'a\u202eb', 'a\\u202eb'],
    ['a zero-width space', 'a\u200bb', 'a\\u200bb'],
  ])('%s', (_, text, expected) => expect(visible(text)).toBe(expected));

  it('stays the same JSON', () =>
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(JSON.parse(visibleInJson(JSON.stringify({ text }, null, 2)))).toEqual({ text });
      }),
    ));
});

function filtered(...pieces: string[]): string {
  const filter = consoleFilter();
  return pieces.map((piece) => filter.push(Buffer.from(piece))).join('') + filter.end();
}

describe("a guest's console on a terminal", () => {
  it.each([
    ['lines and tabs stay', 'a\tb\nc', 'a\tb\nc'],
    ['CR LF is a line end', 'a\r\nb\r\r\nc', 'a\nb\nc'],
    ['a lone CR may not write over its line', 'safe\rspoof', 'safe\nspoof'],
    ['colours stay and are ended', `${esc}[1;31mred`, `${esc}[1;31mred${esc}[0m`],
    ['the cursor may not move', `${esc}[5Ax`, '\\x1b[5Ax'],
    ['the title may not change', `${esc}]0;x\u0007`, '\\x1b]0;x\\x07'],
    ['nothing may be asked of the terminal', `${esc}[6n`, '\\x1b[6n'],
    ['a cut escape at the end is spelled out', `a${esc}[3`, 'a\\x1b[3'],
  ])('%s', (_, text, expected) => expect(filtered(text)).toBe(expected));

  it('does not depend on where the pieces are cut', () =>
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom('a', '\r', '\n', '\r\n', esc, '[', '3', '1m', `${esc}[0m`, ';', 'ä', '\u0007'), {
          maxLength: 30,
        }),
        fc.nat(40),
        (parts, at) => {
          const bytes = Buffer.from(parts.join(''));
          const cut = Math.min(at, bytes.length);
          const filter = consoleFilter();
          const inTwo = filter.push(bytes.subarray(0, cut)) + filter.push(bytes.subarray(cut)) + filter.end();
          expect(inTwo).toBe(filtered(parts.join('')));
        },
      ),
    ));

  it('lets no control through but lines, tabs and colours', () =>
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'binary' }), { maxLength: 5 }), (pieces) => {
        const shown = filtered(...pieces).replace(/\u001b\[[0-9;:]*m/g, '');
        // biome-ignore lint/suspicious/noControlCharactersInRegex: these must not be there
        expect(shown).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202e]/);
      }),
    ));
});
