// Every operation has an example, and every example is what its route takes.

import type { TSchema } from 'typebox';
import { describe, expect, it } from 'vitest';
import { parse } from '../parse.ts';
import { resourceDefinitions } from '../resources/index.ts';
import { bodyExamples } from './examples.ts';
import { routes } from './registry.ts';

const withBody = routes.filter(({ body }) => body !== undefined && body !== 'bytes');

it('every route with a body has one, and no other has', () => {
  expect(
    Object.keys(bodyExamples).filter((id) => !withBody.some((route) => route.id === id) && !/^replace/.test(id)),
  ).toEqual([]);
  expect(withBody.filter(({ id }) => bodyExamples[id] === undefined).map(({ id }) => id)).toEqual([]);
});

describe.each(withBody.map((route) => [route.id, route.body as TSchema] as const))('%s', (id, schema) => {
  it('is what its schema takes', () => {
    expect(() => parse(schema, structuredClone(bodyExamples[id]))).not.toThrow();
  });
});

it.each(Object.values(resourceDefinitions).map(({ kind, spec }) => [kind, spec as TSchema] as const))(
  'the spec of a new %s is what its definition takes',
  (kind, spec) => {
    const example = bodyExamples[`create${kind.charAt(0).toUpperCase()}${kind.slice(1)}`];
    if (example === undefined || kind === 'token' || kind === 'secret') return; // they have bodies of their own
    expect(() => parse(spec, structuredClone((example as { spec: unknown }).spec))).not.toThrow();
  },
);
