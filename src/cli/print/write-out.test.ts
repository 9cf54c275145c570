import { setImmediate as turn } from 'node:timers/promises';
import { PassThrough } from 'node:stream';
import { expect, it } from 'vitest';
import { writeOut } from './write-out.ts';

it('waits for a reader that is slower than what is written', async () => {
  const output = new PassThrough({ highWaterMark: 4 });
  await writeOut(output, Buffer.from('abc'));
  let taken = false;
  const written = writeOut(output, Buffer.from('defgh')).then(() => {
    taken = true;
  });
  await turn();
  expect(taken).toBe(false);
  expect(String(output.read())).toBe('abcdefgh');
  await written;
});
