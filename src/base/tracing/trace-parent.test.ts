import { expect, it } from 'vitest';
import { spanIdIn, traceIdIn, traceParentIn } from './trace-parent.ts';

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
const spanId = '00f067aa0ba902b7';
const valid = `00-${traceId}-${spanId}-01`;

it('takes a valid one as it is, and those of later versions', () => {
  expect(traceParentIn(valid)).toBe(valid);
  expect(traceParentIn(`cc-${traceId}-${spanId}-01-what-comes`)).toBe(`cc-${traceId}-${spanId}-01-what-comes`);
  expect([traceIdIn(valid), spanIdIn(valid)]).toEqual([traceId, spanId]);
});

it.each([
  ['nothing', undefined],
  ['no text', 7],
  ['capitals', valid.toUpperCase()],
  ['no trace', `00-${'0'.repeat(32)}-${spanId}-01`],
  ['no span', `00-${traceId}-${'0'.repeat(16)}-01`],
  ['the forbidden version', `ff-${traceId}-${spanId}-01`],
  ['more than version 00 has', `${valid}-x`],
  ['too little', valid.slice(0, -3)],
  ['white space', ` ${valid}`],
  ['a long text', `cc-${traceId}-${spanId}-01-${'x'.repeat(200)}`],
])('takes no %s', (_, text) => expect(traceParentIn(text)).toBeUndefined());
