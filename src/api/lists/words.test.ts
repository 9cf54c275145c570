import { expect, it } from 'vitest';
import type { AnyResource } from '../resources/index.ts';
import { fits, parseWords } from './words.ts';

const web = {
  kind: 'instance',
  metadata: { name: 'web-1', project: 'shop', labels: { tier: 'front' } },
  spec: { image: 'tiny' },
  status: { phase: 'Running', host: 'h1' },
} as unknown as AnyResource; // what the filter looks at

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
  ['host=h1 image=tiny state=Running', true],
  ['host=h2', false],
  ['state!=Running', false],
])('the filter "%s" takes web-1: %s', (filter, taken) => {
  expect(fits(web, parseWords(filter))).toBe(taken);
});
