import { expect, it } from 'vitest';
import { matches } from './filter.ts';

const web = { name: 'web-1', project: 'shop', labels: { tier: 'front' } };

it.each([
  ['', true],
  ['web', true],
  ['WEB', true],
  ['db', false],
  ['web project=shop', true],
  ['web, project=other', false],
  ['tier=front', true],
  ['tier=db', false],
  ['tier!=db', true],
  ['tier!=front', false],
  ['zone!=a', true],
  ['name=web-1', true],
  ['name=web', false],
])('the filter "%s" takes web-1: %s', (filter, taken) => {
  expect(matches(web, filter)).toBe(taken);
});
