import { describe, expect, it } from 'vitest';
import { ansiLine, columnsMax, plainStyle } from './ansi-line.ts';

const textOf = (line: string): string =>
  ansiLine(line, plainStyle)
    .runs.map(({ text }) => text)
    .join('');

describe('the text of a line', () => {
  it.each([
    ['plain', 'plain'],
    ['a progress bar ends as one line', '10 %\r20 %\rdone', 'done'],
    ['a shorter end leaves the rest', 'abcdef\rxy', 'xycdef'],
    ['which an erasure removes', 'abcdef\rxy\u001b[K', 'xy'],
    ['a whole erasure', 'abc\u001b[2K\rx', 'x'],
    ['an erasure to the left', 'abc\u001b[2D\u001b[1K', '  c'],
    ['backspace', 'ab\bc', 'ac'],
    ['tabs', 'a\tb', 'a       b'],
    ['a title of the window', 'a\u001b]0;planted\u0007b', 'ab'],
    ['the clipboard', 'a\u001b]52;c;cGxhbnRlZA==\u001b\\b', 'ab'],
    ['a link keeps its text', '\u001b]8;;javascript:alert(1)\u0007here\u001b]8;;\u0007', 'here'],
    ['a command of a device', '\u001bPq#0\u001b\\x', 'x'],
    ['an unfinished one ends with the line', 'a\u001b]0;never', 'a'],
    ['and after 4 KiB', `\u001b]0;${'x'.repeat(5_000)}`, 'x'.repeat(5_000 + 2 - 4_096)],
    ['the cursor elsewhere', '\u001b[10;10Hx\u001b[2Jy', 'xy'],
    ['a character set', '\u001b(Bx', 'x'],
    ['an escape at the end', 'x\u001b', 'x'],
    ['markup', '<img src=x onerror=alert(1)>\u001b[0m', '<img src=x onerror=alert(1)>'],
    ['letters beyond 16 bits', '\u001b[1m\u{1f600}é\u001b[0m', '\u{1f600}é'],
    ['far to the right', '\u001b[999999999Cx', ''],
  ])('%s', (name, line, text = name) => {
    expect(textOf(line)).toBe(text);
  });

  it('is cut where it would never end', () => {
    expect(textOf('x'.repeat(1_000_000))).toHaveLength(columnsMax);
    expect(textOf(`\u001b[1m${'x'.repeat(1_000_000)}`)).toHaveLength(columnsMax);
  });
});

describe('the style', () => {
  it.each([
    ['31', { fg: '#ff7b72' }],
    ['1;31', { bold: true, fg: '#ff7b72' }],
    ['91', { fg: '#ffa198' }],
    ['41', { bg: '#8e1519' }],
    ['38;5;196', { fg: '#ff0000' }],
    ['38;5;244', { fg: '#808080' }],
    ['48;5;1', { bg: '#8e1519' }],
    ['38;2;1;2;255', { fg: '#0102ff' }],
    ['38;2;1;2;255;4', { fg: '#0102ff', underline: true }],
    ['38;2;1;2;999', {}],
    ['38;9', {}],
    ['1;22;3;23', {}],
    ['4;0;9', { strike: true }],
    ['', {}],
    ['?25', {}],
  ])('of %s', (code, style) => {
    expect(ansiLine(`\u001b[${code}mx`, plainStyle).runs).toEqual([{ text: 'x', style }]);
  });

  it('goes on in the next line', () => {
    const { end } = ansiLine('\u001b[32mgreen', plainStyle);
    expect(ansiLine('too\u001b[0m not', end).runs).toEqual([
      { text: 'too', style: { fg: '#5fd47a' } },
      { text: ' not', style: {} },
    ]);
  });
});
