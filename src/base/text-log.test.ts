import { describe, expect, it } from 'vitest';
import { createTextLogger, type LogLevel, textLine } from './text-log.ts';

const nowMs = Date.UTC(2026, 0, 2, 3, 4, 5, 6);

describe('a log for people', () => {
  it.each<[string, Parameters<typeof textLine>[0], string]>([
    [
      'has time, level, message and fields',
      { level: 'warn', message: 'cannot register', fields: { host: 'h1', delayMs: 500 }, nowMs },
      '03:04:05.006 WARN  cannot register  host=h1 delayMs=500\n',
    ],
    [
      'quotes what has spaces, and leaves out what is not there',
      {
        level: 'error',
        message: 'it failed',
        fields: { error: 'no "route"', cause: undefined, code: { a: 1 } },
        nowMs,
      },
      '03:04:05.006 ERROR it failed  error="no \\"route\\"" code={"a":1}\n',
    ],
    [
      'spells out what would steer a terminal',
      { level: 'info', message: 'a\u001b[2Jb\nc', fields: { name: '\u009b1m\u202e' }, nowMs },
      '03:04:05.006 INFO  a\\u001b[2Jb\\u000ac  name="\\u009b1m\\u202e"\n',
    ],
  ])('%s', (_, event, line) => {
    expect(textLine(event)).toBe(line);
  });

  it.each<[LogLevel, string]>([
    ['debug', 'debug info warn error'],
    ['warn', 'warn error'],
    ['silent', ''],
  ])('at level %s has: %s', (level, told) => {
    const lines: string[] = [];
    const log = createTextLogger({ level, nowMs: () => nowMs, write: (line) => lines.push(line) }).with({ part: 'x' });
    for (const each of ['debug', 'info', 'warn', 'error'] as const) log[each](each, { n: 1 });
    const words = told === '' ? [] : told.split(' ');
    expect(lines).toEqual(words.map((word) => `03:04:05.006 ${word.toUpperCase().padEnd(5)} ${word}  part=x n=1\n`));
  });
});
