import { expect, it } from 'vitest';
import { page, runBerth } from './testing.ts';

const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';

it.each([
  [traceparent, traceparent],
  ['no trace', undefined],
  [undefined, undefined],
])('with TRACEPARENT %s a command sends %s', async (text, sent) => {
  const environment: Record<string, string> = text === undefined ? {} : { TRACEPARENT: text };
  const { requests, exitCode } = await runBerth(['image', 'ls'], { handler: () => page([]), environment });
  expect(exitCode).toBe(0);
  expect(requests.map(({ headers }) => headers['traceparent'])).toEqual(requests.map(() => sent));
  expect(requests.length).toBeGreaterThan(0);
});
