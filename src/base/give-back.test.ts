import { expect, it } from 'vitest';
import { giveBack } from './give-back.ts';

it('empties a buffer and all views of it', () => {
  const bytes = Buffer.concat([Buffer.alloc(50_000, 1), Buffer.alloc(50_000, 2)]);
  const part = bytes.subarray(10, 20);
  giveBack(part);
  expect([bytes.byteLength, part.byteLength, bytes.buffer.byteLength]).toEqual([0, 0, 0]);
  giveBack(bytes);
});

it.each([
  ['a small Buffer, which shares its memory with others', (): Uint8Array => Buffer.from('small')],
  ['memory that threads share', (): Uint8Array => new Uint8Array(new SharedArrayBuffer(100_000))],
])('leaves %s alone', (_, make) => {
  const bytes = make();
  const { byteLength } = bytes;
  giveBack(bytes);
  expect(bytes.byteLength).toBe(byteLength);
});
