import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { openApiDocument } from './openapi.ts';
import { routes } from './routes/registry.ts';

const document = openApiDocument();
const text = JSON.stringify(document);

// Nineteen kinds of resources with some 20 KB each, and the routes of their own.
it('is below 900 KB as it is checked in', () => {
  expect(readFileSync(new URL('../../docs/openapi.json', import.meta.url)).byteLength).toBeLessThan(900_000);
});

it('has every route of the registry once, each with its own id', () => {
  expect(new Set(routes.map(({ id }) => id)).size).toBe(routes.length);
  expect(new Set(routes.map(({ method, path }) => `${method} ${path}`)).size).toBe(routes.length);
  expect(text.match(/"operationId":/g)).toHaveLength(routes.filter(({ formerPath }) => !formerPath).length);
});

it('refers to nothing that is not there, and holds no component that nothing refers to', () => {
  const referred = new Set([...text.matchAll(/"\$ref":"#\/components\/([^"]+)"/g)].map(([, name]) => name));
  const { securitySchemes: _schemes, ...components } = document['components'] as Record<string, object>;
  const there = Object.entries(components).flatMap(([kind, named]) =>
    Object.keys(named).map((name) => `${kind}/${name}`),
  );
  expect([...referred].sort()).toEqual(there.sort());
});

it('requires no field that has a default', () => {
  const broken: string[] = [];
  JSON.stringify(document, (key, value: unknown) => {
    const { properties, required } = (value ?? {}) as { properties?: Record<string, object>; required?: unknown };
    for (const name of Array.isArray(required) && properties ? required : [])
      if ('default' in (properties?.[name] ?? {})) broken.push(`${key}.${name}`);
    return value;
  });
  expect(broken).toEqual([]);
});
