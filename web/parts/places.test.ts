import { expect, it } from 'vitest';
import { resourceDefinitions } from '../../src/api/resources/index.ts';
import { paths } from '../paths.ts';
import { allPlaces } from './places.ts';

it('every kind of resource can be reached', () => {
  const reached = new Set(allPlaces.flatMap(({ items }) => items.map(({ path }) => path)));
  const kinds = Object.values(resourceDefinitions).map(({ kind }) => kind);
  expect(kinds.filter((kind) => !reached.has(paths.list(kind)))).toEqual([]);
});
