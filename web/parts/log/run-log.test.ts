import { describe, expect, it } from 'vitest';
import { plainText, RunLog, shownLines } from './run-log.ts';

const stamp = '2026-11-27T02:00:00.123456Z';
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const of = (...lines: readonly string[]): RunLog => {
  const log = new RunLog();
  log.push(bytes(lines.map((line) => `${stamp} stdout F ${line}\n`).join('')));
  return log;
};

describe('a log', () => {
  it('has the lines of the program, with time and stream', () => {
    const log = new RunLog();
    log.push(bytes(`${stamp} stdout F out\n${stamp} stderr F err\n`));
    const atMs = Date.parse('2026-11-27T02:00:00.123Z');
    expect(log.lines).toEqual([
      { atMs, stream: 'stdout', text: 'out', start: {} },
      { atMs, stream: 'stderr', text: 'err', start: {} },
    ]);
  });

  it('is the same in whatever pieces it comes', () => {
    const whole = bytes(`${stamp} stdout P héll\n${stamp} stderr F in between\n${stamp} stdout F ö\n`);
    for (let size = 1; size < 40; size += 1) {
      const log = new RunLog();
      for (let at = 0; at < whole.length; at += size) log.push(whole.subarray(at, at + size));
      expect(log.lines.map(({ text }) => text)).toEqual(['in between', 'héllö']);
      expect(log.bytes).toBe(whole.length);
    }
  });

  it('joins a letter that was cut', () => {
    const [first = 0, second = 0] = bytes('é');
    const log = new RunLog();
    log.push(bytes(`${stamp} stdout P `));
    log.push(Uint8Array.of(first, 0x0a));
    log.push(bytes(`${stamp} stdout F `));
    log.push(Uint8Array.of(second, 0x0a));
    expect(log.lines.map(({ text }) => text)).toEqual(['é']);
  });

  it('shows the beginning of a line when nothing more comes', () => {
    const log = new RunLog();
    log.push(bytes(`${stamp} stdout P name? \nno header`));
    expect(log.lines).toEqual([]);
    log.end();
    expect(log.lines.map(({ text }) => text)).toEqual(['name? ']);
  });

  it('keeps a colour until its stream ends it, and the other stream has its own', () => {
    const log = new RunLog();
    for (const [stream, text] of [
      ['stdout', '\u001b[31mred'],
      ['stderr', 'plain'],
      ['stdout', 'red too'],
    ])
      log.push(bytes(`${stamp} ${stream} F ${text}\n`));
    expect(log.lines.map(({ start }) => start.fg)).toEqual([undefined, undefined, '#ff7b72']);
    expect(log.lines.map(plainText)).toEqual(['red', 'plain', 'red too']);
  });
});

describe('groups', () => {
  const log = of('a', '::group::Build', 'b', 'c', '::endgroup::', '##[group]', 'd', '::group::Test', 'e');

  it('have a title, a beginning and an end', () => {
    expect(log.groups).toEqual([
      { title: 'Build', from: 1, to: 4 },
      { title: 'Group', from: 5, to: 6 },
      { title: 'Test', from: 7, to: undefined },
    ]);
  });

  it.each([
    [[], undefined],
    [[1], [0, 1, 5, 6, 7, 8]],
    [
      [1, 7],
      [0, 1, 5, 6, 7],
    ],
    [
      [1, 5, 7],
      [0, 1, 5, 7],
    ],
  ])('hide their lines while they are closed: %j', (closed, shown) => {
    expect(shownLines(log, new Set(closed))).toEqual(shown);
  });
});
