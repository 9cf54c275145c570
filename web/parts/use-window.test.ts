import { expect, it } from 'vitest';
import { spanOf } from './use-window.ts';

it.each([
  { name: 'the top', topPx: 0, count: 100, span: [0, 12] },
  { name: 'the middle', topPx: 1_000, count: 100, span: [48, 62] },
  { name: 'the end', topPx: 1_800, count: 100, span: [88, 99] },
  { name: 'a list that became shorter', topPx: 1_800, count: 5, span: [2, 4] },
  { name: 'no rows', topPx: 0, count: 0, span: [0, -1] },
])('shows the rows in view at $name, and two more', ({ topPx, count, span }) => {
  const { first, last } = spanOf(topPx, 200, { count, rowPx: 20, more: 2 });
  expect([first, last]).toEqual(span);
});
