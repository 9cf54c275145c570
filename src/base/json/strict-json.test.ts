import { describe, expect, it } from 'vitest';
import { parseStrictJson } from './strict-json.ts';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

describe('strict JSON takes', () => {
  it.each([
    ['an object', '{"a":[1,{"b":null}],"c":"{\\"a\\":1,\\"a\\":2}"}'],
    ['equal keys in two objects', '[{"a":1},{"a":1}]'],
    ['equal words that are no keys', '{"a":["a","a"],"b":"a"}'],
    ['a number', ' 1 '],
    ['32 levels', `${'['.repeat(32)}${']'.repeat(32)}`],
  ])('%s', (_name, text) => {
    expect(parseStrictJson(bytes(text))).toEqual({ ok: true, value: JSON.parse(text) });
  });
});

describe('strict JSON refuses', () => {
  it.each([
    ['nothing', '', 'NotJson'],
    ['words', 'hello', 'NotJson'],
    ['an open string', '{"a', 'NotJson'],
    ['a byte order mark', '\ufeff{}', 'NotJson'],
    ['a key twice', '{"a":1,"b":{"a":1},"a":2}', 'DuplicateKey'],
    ['a key twice, once escaped', '{"a":1,"\\u0061":2}', 'DuplicateKey'],
    ['33 levels', `${'['.repeat(33)}${']'.repeat(33)}`, 'TooDeep'],
    ['10,000 levels', '{"a":'.repeat(10_000), 'TooDeep'],
  ])('%s', (_name, text, reason) => {
    expect(parseStrictJson(bytes(text))).toMatchObject({ ok: false, reason });
  });

  it('bytes that are not UTF-8', () => {
    expect(parseStrictJson(Uint8Array.of(0x22, 0xff, 0x22))).toMatchObject({ ok: false, reason: 'NotUtf8' });
  });
});
