import { describe, expect, it } from 'vitest';
import { randomSecret } from '../../base/system.ts';
import { DataKeys } from './data-keys.ts';
import { parseMasterKeys } from './master-keys.ts';
import { newMasterKey } from './read-master-keys.ts';

describe('a text of master keys', () => {
  const bytes = Buffer.from(newMasterKey(), 'base64');
  it.each([
    ['base64', bytes.toString('base64')],
    ['base64 without its end', bytes.toString('base64').slice(0, 43)],
    ['base64url', bytes.toString('base64url')],
    ['hex', bytes.toString('hex')],
    ['with a comment and blank lines', `# made for the fleet\n\n${bytes.toString('base64')}  \n\n`],
    ['from Windows', `${bytes.toString('base64')}\r\n`],
  ])('is read: %s', (_, text) => {
    expect(parseMasterKeys(text).current.bytes).toEqual(bytes);
  });

  it('has the current key first, then older ones', () => {
    const [a, b] = [newMasterKey(), newMasterKey()];
    const keys = parseMasterKeys(`${a}\n${b}\n`);
    expect(keys.ids).toHaveLength(2);
    expect(keys.current.id).toBe(parseMasterKeys(a).current.id);
    expect(keys.has(parseMasterKeys(b).current.id)).toBe(true);
  });

  it.each([
    ['empty', '', 'there is no key'],
    ['only a comment', '# key', 'there is no key'],
    ['too short', 'c2VjcmV0', 'line 1 is not a key'],
    ['a passphrase of the right length', 'x'.repeat(42), 'line 1 is not a key'],
    ['zeros', 'A'.repeat(43), 'line 1 is not a random key'],
    ['a word beside it', `${newMasterKey()} x`, 'line 1 is not a key'],
    ['a bad second line', `${newMasterKey()}\nsecret!`, 'line 2 is not a key'],
  ])('is refused, and not repeated: %s', (_, text, message) => {
    expect(() => parseMasterKeys(text)).toThrow(message);
    for (const word of text.split(/\s/).filter((each) => each.length > 5))
      expect(() => parseMasterKeys(text)).not.toThrow(word);
  });
});

it('opens data keys under any of the given master keys, and wraps them under the first', () => {
  const [old, next] = [newMasterKey(), newMasterKey()];
  const before = new DataKeys(parseMasterKeys(old), randomSecret);
  const record = before.make(1);
  expect(before.learn(record)).toBe(true);
  const both = new DataKeys(parseMasterKeys(`${next}\n${old}`), randomSecret);
  expect(both.learn(record)).toBe(true);
  const rewrapped = both.rewrapped(record);
  expect(rewrapped).toMatchObject({ id: record.id, masterKey: parseMasterKeys(next).current.id, createdAtMs: 1 });
  expect(rewrapped && both.rewrapped(rewrapped)).toBeUndefined();
  const after = new DataKeys(parseMasterKeys(next), randomSecret);
  expect(after.learn(record)).toBe(false);
  expect(rewrapped && after.learn(rewrapped)).toBe(true);
  const place = { kind: 'x', project: '', id: 'y', field: 'z' };
  expect(after.open(before.seal(Buffer.from('v'), place), place)).toEqual(Buffer.from('v'));
});
