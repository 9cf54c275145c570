import { describe, expect, it } from 'vitest';
import { frameReader } from './frames.ts';
import { createLineMixer } from './line-mixer.ts';

function frame(output: number, text: string): Buffer {
  const header = Buffer.alloc(8);
  header.writeUInt8(output, 0);
  header.writeUInt32BE(Buffer.byteLength(text), 4);
  return Buffer.concat([header, Buffer.from(text)]);
}

describe('frames of output', () => {
  it('are read wherever the bytes are cut', () => {
    const bytes = Buffer.concat([frame(1, 'out\n'), frame(2, 'err'), frame(1, ''), frame(1, 'end')]);
    for (let cut = 1; cut <= bytes.length; cut++) {
      const reader = frameReader();
      const frames = [bytes.subarray(0, cut), bytes.subarray(cut)].flatMap((piece) => reader.push(piece));
      expect(frames.map(({ output, data }) => `${output} ${data.toString()}`)).toEqual([
        'stdout out\n',
        'stderr err',
        'stdout ',
        'stdout end',
      ]);
    }
  });

  it('that are long come in pieces, and only the first begins', () => {
    const reader = frameReader();
    const frames = reader.push(frame(1, 'x'.repeat(150_000)));
    expect(frames.map(({ data, begins }) => [data.length, begins])).toEqual([
      [65_536, true],
      [65_536, false],
      [18_928, false],
    ]);
  });

  it('are refused when they are none', () => {
    expect(() => frameReader().push(Buffer.from('hello, world'))).toThrow('no frames');
  });
});

describe('the log of several', () => {
  it('names who wrote, line by line, and breaks no line of one by another', () => {
    const mix = createLineMixer(true);
    const text = [
      mix('a', Buffer.from('one\ntw')),
      mix('a', Buffer.from('o\n')),
      mix('a', Buffer.from('unfinished')),
      mix('b', Buffer.from('mine\n')),
      mix('a', Buffer.from(' later\n')),
    ].join('');
    expect(text).toBe('a: one\na: two\na: unfinished\nb: mine\na:  later\n');
  });

  it('of one alone is what it wrote', () => {
    expect(createLineMixer(false)('a', Buffer.from('x\ny')).toString()).toBe('x\ny');
  });
});
