import { describe, expect, it } from 'vitest';
import { LogLines } from './log-lines.ts';

const t = '2026-11-26T03:10:11.123Z';

function decode(pieces: readonly (string | Uint8Array)[], timestamps = false): string[] {
  const lines = new LogLines({ timestamps });
  const texts = pieces.flatMap((piece) => lines.push(Buffer.from(piece as string)));
  return texts.map(({ stream, bytes }) => `${stream}:${Buffer.from(bytes).toString()}`);
}

describe('the log of a job', () => {
  const rows: [name: string, pieces: string[], texts: string[]][] = [
    ['a line', [`${t} stdout F one\n`], ['stdout:one\n']],
    ['an empty line', [`${t} stdout F \n`], ['stdout:\n']],
    ['lines of one stream, joined', [`${t} stdout F one\n${t} stdout F two\n`], ['stdout:one\ntwo\n']],
    [
      'lines of two streams, in order',
      [`${t} stdout F one\n${t} stderr F two\n${t} stdout F three\n`],
      ['stdout:one\n', 'stderr:two\n', 'stdout:three\n'],
    ],
    ['a line in parts', [`${t} stdout P on\n${t} stdout F e\n`], ['stdout:one\n']],
    ['a line that comes in pieces', ['2026-11-26T03:10', `:11.123Z stdout F o`, 'ne\n'], ['stdout:one\n']],
    ['a line without its end', [`${t} stdout F one`], []],
    ['spaces of the text', [`${t} stdout F  a  b \n`], ['stdout: a  b \n']],
    ['text that looks like a line', [`${t} stdout F ${t} stderr F x\n`], [`stdout:${t} stderr F x\n`]],
    ['what is no line', ['rest of a line\n', `${t} stdout F one\n`, `${t} stdin F x\n`, '\n'], ['stdout:one\n']],
  ];
  it.each(rows)('has %s', (_, pieces, texts) => expect(decode(pieces)).toEqual(texts));

  it('has times before lines of the program, not before their parts', () => {
    const log = `${t} stdout P on\n${t} stderr F err\n${t} stdout F e\n${t} stdout F two\n`;
    expect(decode([log], true)).toEqual([`stdout:${t} on`, `stderr:${t} err\n`, `stdout:e\n${t} two\n`]);
  });

  it('is the same text however it is cut into pieces', () => {
    const log = Buffer.from(`${t} stdout F eins ä\n${t} stderr P zw\n${t} stderr F ei\n${t} stdout F \n`);
    for (let at = 0; at <= log.length; at++) {
      const texts = decode([log.subarray(0, at), log.subarray(at)]);
      const of = (stream: string): string =>
        texts.flatMap((text) => (text.startsWith(`${stream}:`) ? [text.slice(7)] : [])).join('');
      expect([of('stdout'), of('stderr')]).toEqual(['eins ä\n\n', 'zwei\n']);
    }
  });

  it('keeps bytes that are not UTF-8', () => {
    const bytes = Buffer.concat([Buffer.from(`${t} stdout F `), Buffer.from([0xff, 0x00, 0xfe, 0x0a])]);
    expect(new LogLines({ timestamps: false }).push(bytes)).toEqual([
      { stream: 'stdout', bytes: Buffer.from([0xff, 0x00, 0xfe, 0x0a]) },
    ]);
  });
});
