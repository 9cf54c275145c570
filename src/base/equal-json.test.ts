import { expect, it } from 'vitest';
import { equalJson } from './equal-json.ts';

it.each([
  [1, 1, true],
  ['a', 'b', false],
  [null, {}, false],
  [[], {}, false],
  [{}, [], false],
  [[1, { a: [2] }], [1, { a: [2] }], true],
  [[1], [1, 2], false],
  [{ a: 1, b: undefined }, { a: 1 }, true],
  [{ a: 1 }, { a: 1, b: undefined }, true],
  [{ a: 1 }, { a: 1, b: 2 }, false],
  [{ a: 1, b: 2 }, { b: 2, a: 1 }, true],
  [{ toString: undefined }, {}, true],
  [{ a: {} }, { a: { b: 1 } }, false],
  [{ constructor: Object }, {}, false],
])('%j and %j are the same JSON: %s', (a, b, same) => {
  expect(equalJson(a, b)).toBe(same);
});
