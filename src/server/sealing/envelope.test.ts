import { describe, expect, it } from 'vitest';
import { isSealed, type Place, type Sealed, Unopenable } from '../../base/sealed.ts';
import { randomSecret } from '../../base/system.ts';
import { keyIdOf, open, parentKey, randomBytesPerValue, seal } from './envelope.ts';

const key = parentKey(randomSecret(32), 'data');
const other = parentKey(randomSecret(32), 'data');
const place: Place = { kind: 'instance', project: 'web', id: 'a', field: 'record' };
const plain = Buffer.from('the user data of web/a');
const sealed = (text: Uint8Array = plain): Sealed =>
  seal({ key, place, random: randomSecret(randomBytesPerValue) }, text);

/** The text with the byte at `at` of its binary part changed. */
function flipped(text: Sealed, at: number): Sealed {
  const [version, id, body] = text.split('.');
  const bytes = Buffer.from(body ?? '', 'base64url');
  const index = at < 0 ? bytes.byteLength + at : at;
  bytes.writeUInt8(bytes.readUInt8(index) ^ 1, index);
  return `${version}.${id}.${bytes.toString('base64url')}` as Sealed;
}

it.each([0, 1, 15, 16, 17, 100_000])('opens what it has sealed: %i bytes', (length) => {
  const bytes = randomSecret(length);
  expect(open({ key, place }, sealed(bytes))).toEqual(bytes);
});

it('makes another text of the same value each time, of the form that others recognise', () => {
  const [a, b] = [sealed(), sealed()];
  expect(a).not.toBe(b);
  expect(isSealed(a)).toBe(true);
  expect(keyIdOf(a)).toBe(key.id);
  expect(a).not.toContain(plain.toString('base64url').slice(0, 12));
});

it('gives the same key another id for another use', () => {
  expect(parentKey(key.bytes, 'master').id).not.toBe(key.id);
});

describe('a value does not open', () => {
  const body = sealed().length - 25;
  it.each<[string, (text: Sealed) => Sealed, Partial<Place>?]>([
    ['in another kind', (text) => text, { kind: 'job' }],
    ['in another project', (text) => text, { project: 'shop' }],
    ['in another record', (text) => text, { id: 'b' }],
    ['in another field', (text) => text, { field: 'tokenSecret' }],
    ['where project and name run together', (text) => text, { project: '', id: 'web/a' }],
    ['with a changed salt', (text) => flipped(text, 0)],
    ['with a changed nonce', (text) => flipped(text, 32)],
    ['with a changed first byte', (text) => flipped(text, 44)],
    ['with a changed last byte', (text) => flipped(text, -17)],
    ['with a changed tag', (text) => flipped(text, -1)],
    ['without its last byte', (text) => text.slice(0, -2) as Sealed],
    ['with a byte more', (text) => `${text}AA` as Sealed],
    ['cut to its tag', (text) => `${text.slice(0, 25)}${'A'.repeat(22)}` as Sealed],
    ['cut to a shorter tag', (text) => text.slice(0, 25 + body - 16) as Sealed],
    ['that is empty', (text) => text.slice(0, 25) as Sealed],
    ['of another version', (text) => text.replace('sealed1', 'sealed2') as Sealed],
    ['that names another key', (text) => text.replace(key.id, other.id) as Sealed],
    ['that is no text of this kind', () => 'plain' as Sealed],
  ])('%s', (_, change, where = {}) => {
    const text = sealed();
    const named = keyIdOf(change(text)) === other.id ? other : key;
    const attempt = (): unknown => open({ key: named, place: { ...place, ...where } }, change(text));
    expect(attempt).toThrow(Unopenable);
    expect(attempt).not.toThrow(/user data/);
  });

  it('under another key with the same id', () => {
    const wrong = { id: key.id, bytes: other.bytes };
    expect(() => open({ key: wrong, place }, sealed())).toThrow('it does not pass its check');
  });
});
