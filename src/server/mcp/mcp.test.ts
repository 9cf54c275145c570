// What stands between the API and a language model: cleaning, bounds, cursors, hashes of plans, and where requests may come from.

import { describe, expect, it } from 'vitest';
import { cursorOf, nextOf } from './cursor.ts';
import { assertOrigin } from './origin.ts';
import { PlanHash } from './plan-hash.ts';
import { tools } from './tools/registry.ts';
import { cleanText, cleanValue, fitting, lastLines } from './untrusted.ts';

describe('text from users and guests', () => {
  it.each([
    ['colours', '\u001b[31mred\u001b[0m', 'red'],
    ['a title for the terminal', 'a\u001b]0;owned\u0007b', 'ab'],
    ['an unfinished title', 'a\u001b]0;owned', 'a'],
    ['control characters', 'a\u0000b\rc\u009bd', 'abcd'],
    ['what is written backwards', 'a\u202eb\u2066c', 'abc'],
    ['invisible tags', 'a\u{e0041}b\ufeff', 'ab'],
    ['lines and tabs, which stay', 'a\n\tb', 'a\n\tb'],
  ])('is cleaned of %s', (_what, text, clean) => {
    expect(cleanText(text)).toBe(clean);
    expect(cleanValue({ [text]: [text] })).toEqual({ [clean]: [clean] });
  });

  it('is cut to size, and says by how much', () => {
    expect(cleanText('x'.repeat(10), 4)).toBe('xxxx… (6 characters more)');
  });

  it('keeps the items that fit, at least one', () => {
    expect(fitting(['aaaa', 'bbbb', 'cccc'], 14)).toEqual(['aaaa', 'bbbb']);
    expect(fitting(['a'.repeat(100)], 10)).toHaveLength(1);
  });

  it('keeps the last lines that fit', () => {
    expect(lastLines('1\n2\n3\n', 2)).toBe('2\n3');
    expect(lastLines('1111\n2222\n3333', 9, 9)).toBe('2222\n3333');
    expect(lastLines('1234567890', 1, 4)).toBe('7890');
  });
});

describe('a cursor', () => {
  it('is good for its own question', () => {
    expect(nextOf('q', cursorOf('q', 'page-2'))).toBe('page-2');
    expect(nextOf('q', undefined)).toBeUndefined();
  });

  it.each([cursorOf('other', 'page-2'), 'garbage', '', 'eyJhIjoxfQ'])('is refused otherwise: %s', (cursor) => {
    expect(() => nextOf('q', cursor)).toThrow(/cursor/);
  });
});

describe('the hash of a plan', () => {
  const hashes = new PlanHash('key');

  it('is of the request, whatever the order of its fields', () => {
    const hash = hashes.of('run', { b: 1, a: { d: 2, c: undefined } });
    expect(() => hashes.check('run', { a: { d: 2 }, b: 1 }, hash)).not.toThrow();
  });

  it.each([
    ['another action', 'run_job', { a: 1 }],
    ['another value', 'run', { a: 2 }],
    ['another field', 'run', { a: 1, b: 1 }],
  ])('is refused for %s', (_what, action, request) => {
    expect(() => hashes.check(action, request, hashes.of('run', { a: 1 }))).toThrow(/plan/);
  });

  it('cannot be made without the key', () => {
    expect(new PlanHash('other').of('run', {})).not.toBe(hashes.of('run', {}));
  });
});

describe('where a request comes from', () => {
  const names = ['berth.example'];

  it.each([
    [{ host: '127.0.0.1:7070' }],
    [{ host: '[::1]:7070' }],
    [{ host: 'localhost:7070', origin: 'http://localhost:7070' }],
    [{ host: 'BERTH.example' }],
    [{ host: 'berth.example', origin: 'https://berth.example' }],
  ])('is accepted: %j', (headers) => {
    expect(() => assertOrigin(headers, names)).not.toThrow();
  });

  it.each([
    [{ host: 'rebound.example' }],
    [{}],
    [{ host: '' }],
    [{ host: 'berth.example', origin: 'https://evil.example' }],
    [{ host: 'berth.example', origin: 'null' }],
    [{ host: 'localhost:7070', origin: 'http://localhost:3000' }],
  ])('is refused: %j', (headers) => {
    expect(() => assertOrigin(headers, names)).toThrow(/this server|other sites/);
  });
});

describe('the tools', () => {
  it('have names that clients take, and closed schemas', () => {
    for (const { name, input, writes } of tools) {
      expect(name).toMatch(/^[a-z_]{1,64}$/);
      expect(input).toMatchObject({ type: 'object', additionalProperties: false });
      if (writes) expect(input.required).toContain('planHash');
    }
  });
});
