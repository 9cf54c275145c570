import { Type } from 'typebox';
import { describe, expect, it } from 'vitest';
import { route } from '../../../api/routes/route.ts';
import { bind } from './bind.ts';
import { Query, type RouteRequest } from '../route.ts';

const definition = route({
  id: 'test',
  tag: 'test',
  method: 'POST',
  path: '/v1/tests/:name',
  access: 'self',
  summary: 'A test',
  query: {
    limit: Type.Integer({ minimum: 1, maximum: 9, default: 5 }),
    all: Type.Boolean({ default: false }),
    format: Type.Optional(Type.Enum(['raw', 'qcow2'])),
    of: Type.String(),
  },
  moreQuery: { names: /^resources/, documented: {} },
  body: Type.Object({ count: Type.Integer({ default: 1 }) }, { additionalProperties: false }),
  answers: {},
});

const bound = bind(definition, (checked) => ({ status: 200, json: checked }));

function ask(query: string, body: unknown = {}): unknown {
  return bound.handle({
    params: { name: 'a' },
    query: new Query(new URLSearchParams(query)),
    body,
  } as unknown as RouteRequest);
}

describe('a bound route', () => {
  it('has method, path and verb of its definition', () =>
    expect(bound).toMatchObject({ method: 'POST', path: '/v1/tests/:name', access: 'self' }));

  it('gives the handler checked values, with defaults', () => {
    expect(ask('of=x')).toEqual({
      status: 200,
      json: { params: { name: 'a' }, query: { limit: 5, all: false, of: 'x' }, body: { count: 1 } },
    });
    expect(ask('of=x&limit=9&all&format=raw&resources1=VCPU:1', { count: 3 })).toMatchObject({
      json: { query: { limit: 9, all: true, format: 'raw', of: 'x' }, body: { count: 3 } },
    });
  });

  it.each([
    ['a parameter that it does not take', 'of=x&limits=3', 'limits', 'did you mean "limit"?'],
    ['a number outside its range', 'of=x&limit=10', 'limit', 'limit must be a whole number from 1 to 9'],
    ['a word that is not in the list', 'of=x&format=iso', 'format', 'format must be one of: raw, qcow2'],
    ['a parameter given twice', 'of=x&of=y', 'of', 'is given twice'],
    ['a parameter that is missing', '', 'of', 'of is missing'],
  ])('refuses %s', (_, query, field, message) =>
    expect(() => ask(query)).toThrow(
      expect.objectContaining({ code: 'InvalidRequest', field, message: expect.stringContaining(message) }),
    ),
  );

  it('refuses a body that does not fit the schema', () =>
    expect(() => ask('of=x', { counts: 1 })).toThrow('unknown field "counts"; did you mean "count"?'));
});
