import { deepStrictEqual } from 'node:assert/strict';
import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { seededPrng } from '../prng.ts';
import { AlikeJson } from './alike-json.ts';
import type { Sharing } from './json-form.ts';

const asTheyAre: Sharing = {
  isPart: () => false,
  isMap: () => false,
  map: (entries) => Object.fromEntries(entries),
  kept: (_, value) => value,
};
const inParts: Sharing = { ...asTheyAre, isPart: (name) => name === 'part', isMap: (name) => name === 'map' };

const encoder = new TextEncoder();
const bytesOf = (json: string): Uint8Array => encoder.encode(json);

/** What is said of each text, in their order; `alone` for one that is left to its user. */
function readAll(texts: readonly Uint8Array[], sharing = asTheyAre, reader = new AlikeJson(() => sharing)): unknown[] {
  const entries = texts.map((value, at) => ({ value, at }));
  const read: unknown[] = [];
  const take = (at: number, value: unknown): void => {
    expect(at).toBe(read.length);
    read.push(value);
  };
  reader.read(entries, { made: ({ at }, value) => take(at, value), alone: ({ at }) => take(at, alone) });
  expect(read.length).toBe(texts.length);
  return read;
}
const alone = Symbol('alone');

function parsed(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return alone;
  }
}

function expectTrue(texts: readonly Uint8Array[], read: readonly unknown[]): void {
  for (const [at, text] of texts.entries()) if (read[at] !== alone) deepStrictEqual(read[at], parsed(text));
}

const name = fc.oneof(
  { weight: 60, arbitrary: fc.constantFrom('a', 'name', 'part', 'map', '7', 'é"\n', '\ud800') },
  { weight: 1, arbitrary: fc.constant('__proto__') },
);
const word = fc.oneof(
  fc.constantFrom('', 'web-1', 'web-2', 'a\\', '"', '","', '\u0001', 'ü', '\ud83d', '\u2028', '{', 'x'.repeat(300)),
  fc.string({ maxLength: 8 }),
);
const number = fc.oneof(
  fc.constantFrom(0, -1, 1.5, 1e21, 1e-7, 123_456_789_012_345, 1_234_567_890_123_456, Number.MAX_SAFE_INTEGER, 5e-324),
  fc.nat(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
);
const leaf = fc.oneof(word, number, fc.constantFrom(true, false, null));
const { value } = fc.letrec((tie) => ({
  value: fc.oneof({ maxDepth: 4 }, leaf, tie('object'), fc.array(tie('value'), { maxLength: 3 })),
  object: fc.dictionary(name, tie('value'), { maxKeys: 5 }),
}));

/** The same with other words and numbers in it. */
function varied(value: unknown, next: () => unknown): unknown {
  if (Array.isArray(value)) return value.map((each: unknown) => varied(each, next));
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, varied(each, next)]));
  if (typeof value === 'boolean' || value === null) return value;
  const other = next();
  return typeof other === typeof value ? other : value;
}

const family = fc
  .tuple(fc.dictionary(name, value, { maxKeys: 5 }), fc.array(fc.array(leaf, { maxLength: 6 }), { maxLength: 8 }))
  .map(([first, leaves]) => [
    first,
    ...leaves.map((some) => {
      let at = 0;
      return varied(first, () => (some.length > 0 ? some[at++ % some.length] : undefined));
    }),
  ]);
const sharings = fc.constantFrom(asTheyAre, inParts);
const texts = fc
  .tuple(fc.array(family, { minLength: 1, maxLength: 4 }), fc.infiniteStream(fc.nat()))
  .map(([families, order]) => {
    const all = families.flat().map((each) => ({ text: bytesOf(JSON.stringify(each)), at: order.next().value ?? 0 }));
    return all.toSorted((a, b) => a.at - b.at).map(({ text }) => text);
  });

it('says what JSON.parse says', () => {
  let [made, all] = [0, 0];
  fc.assert(
    fc.property(texts, sharings, (texts, sharing) => {
      const read = readAll([...texts, ...texts], sharing);
      expectTrue([...texts, ...texts], read);
      made += read.filter((each) => each !== alone).length;
      all += read.length;
    }),
    { numRuns: 500 },
  );
  expect(made).toBeGreaterThan(all / 2);
});

it('leaves what is no JSON to its user, and reads the others', () => {
  const damage = fc.record({
    text: fc.nat(),
    at: fc.nat(),
    byte: fc.constantFrom(...bytesOf('",:{}[]\\ 0-9.eEx'), 0, 0xc3, 0xff),
  });
  let damaged = 0;
  fc.assert(
    fc.property(
      texts,
      sharings,
      fc.array(damage, { minLength: 1, maxLength: 6 }),
      fc.nat(),
      (texts, sharing, faults, cut) => {
        const bad = texts.map((text) => text.slice());
        for (const { text, at, byte } of faults) {
          const one = bad[text % bad.length];
          if (one && one.length > 0) one[at % one.length] = byte;
        }
        const last = bad.pop() ?? new Uint8Array();
        const all = [...texts, ...bad, last.subarray(0, cut % (last.length + 1)), ...texts];
        const read = readAll(all, sharing);
        expectTrue(all, read);
        damaged += all.filter((text) => parsed(text) === alone).length;
      },
    ),
    { numRuns: 1_000 },
  );
  expect(damaged).toBeGreaterThan(500);
});

it.each([
  ['a number with a leading zero', '{"a":1}', '{"a":01}'],
  ['a minus alone', '{"a":1}', '{"a":-}'],
  ['two numbers', '{"a":1}', '{"a":1 2}'],
  ['a text that does not end', '{"a":"b"}', '{"a":"b}'],
  ['a text with a line feed', '{"a":"b"}', '{"a":"\n"}'],
  ['an escape that is none', '{"a":"b"}', '{"a":"\\x"}'],
  ['a comma too many', '{"a":1}', '{"a":1,}'],
  ['more behind it', '{"a":1}', '{"a":1}{"a":1}'],
  ['too little', '{"a":1,"b":[{"c":2}]}', '{"a":1,"b":[{"c":2}'],
  ['a part with the wrong bracket', '{"part":{"a":1}}', '{"part":{"a":1]}'],
  ['a part that is two values', '{"part":[1]}', '{"part":[1],[1]}'],
  ['a name twice', '{"a":1,"b":2}', '{"a":1,"a":2}'],
  ['a name that is no member in code', '{"a":1}', '{"__proto__":{"b":1}}'],
  ['a zero with a sign', '{"a":0}', '{"a":-0}'],
  ['white space', '{"a":1}', '{ "a":1}'],
  ['a list', '{"a":1}', '[1]'],
  ['a number', '{"a":1}', '1'],
  ['nothing', '{"a":1}', ''],
  ['lists as deep as no stack', '{"a":1}', `{"a":${'['.repeat(5_000)}${']'.repeat(5_000)}}`],
  ['objects as deep as no stack', '{"a":1}', `${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}`],
  ['a byte order mark', '{"a":1}', '\ufeff{"a":1}'],
])('leaves to its user: %s', (_, usual, unusual) => {
  const texts = [usual, usual, unusual, usual].map(bytesOf);
  const read = readAll(texts, inParts);
  expect(read[2]).toBe(alone);
  expectTrue(texts, read);
});

it('keeps a part once that is the same in texts that follow one another', () => {
  const texts = ['x', 'y', 'z'].map((a) => bytesOf(JSON.stringify({ a, part: { b: [1, 'c'] } })));
  const read = readAll(texts, inParts);
  expect(read).toEqual(['x', 'y', 'z'].map((a) => ({ a, part: { b: [1, 'c'] } })));
  expect(new Set(read.map((each) => (each as { readonly part: object }).part)).size).toBe(1);
});

it('makes a map of names that differ from text to text', () => {
  const maps = [{ a: 1 }, { b: 2 }, { '7': { x: 1 } }, { c: { x: 1 }, d: 'e' }, {}];
  const map: Sharing['map'] = (entries) => new Map(entries);
  const texts = maps.map((map) => bytesOf(JSON.stringify({ map })));
  expect(readAll(texts, { ...inParts, map })).toEqual(maps.map((each) => ({ map: new Map(Object.entries(each)) })));
});

it('reads texts that are larger than what it holds', () => {
  const texts = Array.from({ length: 40 }, (_, i) => ({ a: i, b: 'é'.repeat(1_000 * i) }));
  const bytes = texts.map((each) => bytesOf(JSON.stringify(each)));
  const read = readAll(bytes);
  expectTrue(bytes, read);
  expect(read.filter((each) => each === alone).length).toBe(bytes.filter(({ length }) => length >= 64 * 1024).length);
});

it('soon lets texts be that have nothing in common, and tries again later', () => {
  let forms = 0;
  const reader = new AlikeJson(() => {
    forms += 1;
    return asTheyAre;
  });
  const different = Array.from({ length: 9_000 }, (_, i) => bytesOf(JSON.stringify({ [`name-${i}`]: i })));
  expectTrue(different, readAll(different, asTheyAre, reader));
  expect(forms).toBeLessThan(20);
  const alike = Array.from({ length: 3_000 }, (_, i) => bytesOf(JSON.stringify({ a: i })));
  const read = readAll(alike, asTheyAre, reader);
  expectTrue(alike, read);
  expect(read.at(-1)).toEqual({ a: 2_999 });
});

it('reads texts of many forms in any order', () => {
  const forms = Array.from({ length: 9 }, (_, k) => (i: number) => ({
    a: `text-${i}`,
    more: Array(k).fill(i),
    b: 'same',
  }));
  const order = seededPrng(1);
  const texts = Array.from({ length: 5_000 }, (_, i) => bytesOf(JSON.stringify(forms[order.below(9)]?.(i))));
  const read = readAll(texts);
  expectTrue(texts, read);
  expect(new Set(read.map((each) => each === alone)).size).toBe(2);
});

it('goes on rightly when it cannot be told how values are kept', () => {
  let told = 0;
  const reader = new AlikeJson(() => {
    told += 1;
    if (told === 2) throw new Error('no more');
    return asTheyAre;
  });
  const [first, second, other]: readonly Uint8Array[] = ['{"a":"first"}', '{"a":"second"}', '{"b":1}'].map(bytesOf);
  if (!first || !second || !other) throw new Error('there are three');
  expect(() => readAll([first, other], asTheyAre, reader)).toThrow('no more');
  expect(readAll([first, second, second], asTheyAre, reader)).toEqual([
    { a: 'first' },
    { a: 'second' },
    { a: 'second' },
  ]);
});

it('goes on rightly after its user has thrown', () => {
  const reader = new AlikeJson(() => asTheyAre);
  const texts = ['x', 'y', 'y'].map((a) => bytesOf(JSON.stringify({ a })));
  const entries = texts.map((value) => ({ value }));
  const fault = (): never => {
    throw new Error('no more');
  };
  expect(() => reader.read(entries, { made: fault, alone: fault })).toThrow('no more');
  expect(readAll(texts, asTheyAre, reader)).toEqual([{ a: 'x' }, { a: 'y' }, { a: 'y' }]);
});
