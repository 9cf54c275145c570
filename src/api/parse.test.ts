import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type TSchema, Type } from 'typebox';
import { ApiError } from './errors.ts';
import { nearest } from './nearest.ts';
import { parse } from './parse.ts';
import { InstanceSpec } from './resources/instance.ts';
import { Labels } from './resources/metadata.ts';
import { parseSelector, selects } from './selector.ts';

const schema = Type.Object(
  {
    name: Type.String({ pattern: '^[a-z]+$', description: 'lower-case letters' }),
    ports: Type.Array(Type.Object({ guest: Type.Integer({ minimum: 1 }) }, { additionalProperties: false }), {
      default: [],
    }),
    mode: Type.Enum(['fast', 'slow'], { default: 'slow' }),
    labels: Type.Record(Type.String({ pattern: '^[a-z]+$' }), Type.String(), {
      default: {},
      additionalProperties: false,
    }),
  },
  { additionalProperties: false },
);

function faultOf(input: unknown): { field: string | undefined; message: string } {
  try {
    parse(schema, input, 'spec');
  } catch (error) {
    if (error instanceof ApiError) return { field: error.field, message: error.message };
    throw error;
  }
  return expect.unreachable();
}

describe('parse', () => {
  it('fills in defaults, each time anew', () => {
    const first = parse(schema, { name: 'a' });
    expect(first).toEqual({ name: 'a', ports: [], mode: 'slow', labels: {} });
    first.ports.push({ guest: 1 });
    expect(parse(schema, { name: 'a' }).ports).toEqual([]);
  });

  const rows: [name: string, input: unknown, field: string, message: RegExp][] = [
    ['a missing field', {}, 'spec.name', /spec\.name is missing/],
    ['an unknown field near a known one', { name: 'a', prots: [] }, 'spec.prots', /did you mean "ports"/],
    ['an unknown field far from all', { name: 'a', zzzzzz: 1 }, 'spec.zzzzzz', /known: name, ports, mode, labels/],
    ['a field deep inside', { name: 'a', ports: [{ guest: 1 }, { guest: 0 }] }, 'spec.ports[1].guest', />= 1/],
    ['an unknown field deep inside', { name: 'a', ports: [{ guest: 1, x: 2 }] }, 'spec.ports[0].x', /unknown/],
    ['a pattern, told in its words', { name: 'A' }, 'spec.name', /must be: lower-case letters/],
    ['an enum, told with its values', { name: 'a', mode: 'quick' }, 'spec.mode', /fast, slow/],
    ['a key of a map', { name: 'a', labels: { A: 'x' } }, 'spec.labels.A', /names there match/],
    ['a value of a map', { name: 'a', labels: { a: 1 } }, 'spec.labels.a', /string/],
    ['another type altogether', 'text', 'spec', /object/],
    ['null', null, 'spec', /object/],
    [
      'a value in place of a name',
      { name: 'a', 'hunter22/+x': 1 },
      'spec',
      /^unknown field of 11 characters, which is not/,
    ],
    ['control characters in a name', { name: 'a', 'x\u001b[2J': 1 }, 'spec.x?[2J', /unknown field "x\?\[2J"/],
  ];
  for (const [name, input, field, message] of rows) {
    it(`names the place of ${name}`, () => {
      expect(faultOf(input).field).toBe(field);
      expect(faultOf(input).message).toMatch(message);
    });
  }

  it('answers every JSON there is with a value or a named field, never otherwise', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (input) => {
        try {
          parse(InstanceSpec, structuredClone(input), 'spec');
        } catch (error) {
          expect(error).toBeInstanceOf(ApiError);
          if (error instanceof ApiError) expect(error.field).toMatch(/^spec/);
        }
      }),
      { numRuns: 500 },
    );
  });
});

describe('the nearest known word', () => {
  const rows: [string, string | undefined][] = [
    ['memoryMib', 'memoryMiB'],
    ['cpu', 'cpus'],
    ['imgae', 'image'],
    ['unlike', undefined],
    ['x'.repeat(1000), undefined],
  ];
  for (const [word, expected] of rows) {
    it(`of ${word.slice(0, 12)} is ${expected}`, () =>
      expect(nearest(word, ['cpus', 'memoryMiB', 'image'])).toBe(expected));
  }
});

describe('selectors', () => {
  const labels = { tier: 'web', zone: 'b' };
  const rows: [string, boolean][] = [
    ['', true],
    ['tier=web', true],
    ['tier==web', true],
    ['tier=web,zone=b', true],
    ['tier=web,zone=a', false],
    ['zone!=a', true],
    ['none!=a', true],
    ['tier', true],
    ['!tier', false],
    ['!none', true],
    ['constructor', false],
  ];
  for (const [text, expected] of rows)
    it(`"${text}" is ${expected}`, () => expect(selects(parseSelector(text), labels)).toBe(expected));

  for (const text of ['=', 'a b', '!a=b', 'a=b=c', '(a+)+$', 'a'.repeat(5000)]) {
    it(`refuses "${text.slice(0, 12)}"`, () =>
      expect(() => parseSelector(text)).toThrow(expect.objectContaining({ field: 'selector' })));
  }
});

it('says in words what labels and classes look like, not by a pattern', () => {
  const refusalOf = (schema: TSchema, input: unknown): string => {
    try {
      parse(schema, input, 'here');
    } catch (error) {
      return String(error);
    }
    return expect.unreachable();
  };
  expect(refusalOf(Labels, { app: 'ü' })).toContain('here.app must be: letters, digits');
  expect(refusalOf(Labels, { ü: 'app' })).toContain('names there are: letters, digits');
  expect(refusalOf(InstanceSpec, { image: 'tiny', resources: { custom_x: 2 } })).toContain('names there are: CUSTOM_');
});
