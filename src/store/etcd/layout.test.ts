import { expect, it } from 'vitest';
import { AnsweredKeyValue } from './answers.ts';
import { decodeEntry, encodeEntry as encodeInPieces, layoutOf } from './layout.ts';

const layout = layoutOf('/berth/');
const key = 'hosts/a';
const value = Buffer.from('{"kind":"host"}');
const encodeEntry = (...of: Parameters<typeof encodeInPieces>): Buffer => Buffer.concat(encodeInPieces(...of));
const place = { id: '00112233445566778899aabbccddeeff', offset: 5, length: 70_000 };

/** As an answer holds it: in the midst of much else, of which nothing may be taken for its own. */
function answered(entry: Buffer): AnsweredKeyValue {
  const whole = layout.entry(key);
  const kv = new AnsweredKeyValue(Buffer.concat([Buffer.alloc(50, 1), whole, entry, Buffer.alloc(50, 2)]));
  kv.keyAt = 50;
  kv.keyEnd = kv.valueAt = 50 + whole.byteLength;
  kv.valueEnd = kv.valueAt + entry.byteLength;
  return kv;
}

const decoded = (entry: Buffer) => decodeEntry(answered(entry), layout, 'etcd');

it('reads an entry, and the place of one that is elsewhere', () => {
  const { value: found, ...rest } = decoded(encodeEntry(key, 2 ** 40, value));
  expect(rest).toMatchObject({ key, revision: 2 ** 40 });
  expect(Buffer.from(found as Uint8Array)).toEqual(value); // no place: the next line
  expect(decoded(encodeEntry(key, 7, value, place))).toMatchObject({ key, revision: 7, value: place });
});

it.each([
  [
    'shorter than what stands before its value',
    encodeEntry(key, 7, value).subarray(0, 10),
    'entry "hosts/a" is cut off',
  ],
  ['with nothing in it', Buffer.alloc(0), 'entry "hosts/a" is cut off'],
  ['cut off in its value', encodeEntry(key, 7, value).subarray(0, -1), 'has a wrong checksum'],
  ['longer than it was written', Buffer.concat([encodeEntry(key, 7, value), Buffer.alloc(1)]), 'has a wrong checksum'],
  ['whose place is cut off', encodeEntry(key, 7, value, place).subarray(0, -1), 'has a wrong checksum'],
  [
    'whose place is longer',
    Buffer.concat([encodeEntry(key, 7, value, place), Buffer.alloc(1)]),
    'has a wrong checksum',
  ],
  [
    'of a kind that there is not',
    Buffer.concat([Buffer.from([3]), encodeEntry(key, 7, value).subarray(1)]),
    'has a wrong',
  ],
])('refuses an entry %s', (_, entry, message) => expect(() => decoded(entry)).toThrow(message));
