import { expect, it } from 'vitest';
import { hashOfLines, linesOfHash, linesWith } from './log-search.ts';
import { RunLog } from './run-log.ts';

it('finds text across colours, in any case', () => {
  const log = new RunLog();
  const lines = ['one', '\u001b[31mER\u001b[0mror', 'two', 'an error'];
  log.push(new TextEncoder().encode(lines.map((line) => `2026-11-27T02:00:00.000Z stdout F ${line}\n`).join('')));
  expect(linesWith(log, 'Error')).toEqual([1, 3]);
  expect(linesWith(log, '')).toEqual([]);
});

it.each([
  ['#L12', { from: 12, to: 12 }],
  ['#L12-L20', { from: 12, to: 20 }],
  ['#L20-L12', { from: 12, to: 20 }],
  ['#L12-20', { from: 12, to: 20 }],
  ['#L0', undefined],
  ['#link=x', undefined],
  ['', undefined],
])('the link "%s" is of lines %j', (hash, lines) => {
  expect(linesOfHash(hash)).toEqual(lines);
  if (lines) expect(linesOfHash(hashOfLines(lines))).toEqual(lines);
});
