import { describe, expect, it } from 'vitest';
import { seededPrng } from '../../../base/prng.ts';
import { verdictOf } from './rate.ts';

const nowMs = 1_800_000_000_000;
type Given = Readonly<Record<string, string>>;

function verdict(
  status: number,
  headers: Given,
  changes: { text?: string; failures?: number; forbidden?: number } = {},
) {
  const { text = '{"message":"no"}', failures = 0, forbidden = 0 } = changes;
  return verdictOf(
    { status, headers: new Headers(headers), text },
    { nowMs, prng: seededPrng(1), failures, forbidden },
  );
}

describe('an answer asks for a pause', () => {
  const reset = String(nowMs / 1000 + 120);
  it.each<[string, number, Given, number]>([
    ['in seconds', 429, { 'retry-after': '30' }, 30_000],
    ['in seconds, with another status', 403, { 'retry-after': '30' }, 30_000],
    ['until a date', 429, { 'retry-after': new Date(nowMs + 90_000).toUTCString() }, 90_000],
    ['until its limit is reset', 403, { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': reset }, 120_000],
    ['by Retry-After before the reset', 429, { 'retry-after': '5', 'x-ratelimit-reset': reset }, 5_000],
    ['of a second at least', 429, { 'retry-after': '0' }, 1_000],
    ['of an hour at most', 429, { 'retry-after': '999999' }, 3_600_000],
    ['without a time', 429, {}, 60_000],
    ['with a time that is none', 429, { 'retry-after': 'soon' }, 60_000],
    [
      'with a reset that does not count, as requests remain',
      429,
      { 'x-ratelimit-remaining': '9', 'x-ratelimit-reset': reset },
      60_000,
    ],
    ['by its own words', 403, {}, 60_000],
  ])('%s', (_, status, headers, pauseMs) =>
    expect(verdict(status, headers, { text: '{"message":"You have exceeded a secondary rate limit"}' })).toMatchObject({
      kind: 'later',
      pauseMs,
    }),
  );

  it('that grows with each failure, when the forge gives no time', () => {
    const pauseOf = (failures: number): number => ({ pauseMs: 0, ...verdict(429, {}, { failures }) }).pauseMs;
    expect(pauseOf(3)).toBeGreaterThanOrEqual(240_000); // half of 60 s, doubled three times
    expect(pauseOf(3)).toBeLessThanOrEqual(480_000);
    expect(pauseOf(10)).toBeLessThanOrEqual(3_600_000);
  });

  it.each([0, 408, 500, 502, 503])('that is short, after a failure of the network or the forge: %s', (status) => {
    const { pauseMs } = { pauseMs: 0, ...verdict(status, {}) };
    expect(pauseMs).toBeGreaterThanOrEqual(1_000);
    expect(pauseMs).toBeLessThanOrEqual(2_000);
  });
});

describe('an answer ends it', () => {
  it.each([301, 307, 400, 404, 410, 413, 422])('with %s', (status) =>
    expect(verdict(status, {})).toEqual({ kind: 'refused', error: `${status}: no` }),
  );

  it.each([401, 403])('with %s at the fifth time', (status) => {
    expect(verdict(status, {}, { forbidden: 3 })).toMatchObject({ kind: 'later' });
    expect(verdict(status, {}, { forbidden: 4 })).toMatchObject({ kind: 'refused' });
  });

  it('with an error of one line', () =>
    expect(verdict(422, {}, { text: `<html>\n${'x'.repeat(1000)}` })).toEqual({
      kind: 'refused',
      error: expect.stringMatching(/^422: <html> x{500}$/),
    }));
});
