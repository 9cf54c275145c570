// Signatures and the schedule of attempts.

import { describe, expect, it } from 'vitest';
import { seededPrng } from '../../../base/prng.ts';
import { retryAfterMsOf, retryDelayMs } from './retry.ts';
import { signatureOf, signingKey } from './signature.ts';

it('signs as the specification does in its example', () => {
  const key = signingKey('whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw');
  const message = { id: 'msg_p5jXN8AQM9LWM0D4loKWxJek', timestamp: 1_614_265_330, body: '{"test": 2432232314}' };
  expect(key && signatureOf([key], message)).toBe('v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=');
  expect(key && signatureOf([key, key], message).split(' ')).toHaveLength(2);
});

it.each(['', 'whsec_', 'whsec_c2hvcnQ=', 'MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', 'whsec_***', `whsec_${'A'.repeat(100)}`])(
  '%s is no secret',
  (text) => expect(signingKey(text)).toBeUndefined(),
);

describe('attempts', () => {
  it('come after 5 s, 5 min, ... and end after three days', () => {
    const prng = seededPrng(1);
    const delays = Array.from({ length: 12 }, (_, i) => retryDelayMs(i + 1, prng));
    expect(delays.slice(9)).toEqual([undefined, undefined, undefined]);
    for (const [i, least] of [5, 300, 1_800, 7_200].entries()) {
      expect(delays[i]).toBeGreaterThanOrEqual(least * 1_000);
      expect(delays[i]).toBeLessThanOrEqual(least * 1_100);
    }
    const sum = delays.reduce<number>((total, each) => total + (each ?? 0), 0);
    expect(sum / 3_600_000).toBeGreaterThan(75);
  });

  it.each([
    [60_000, 60_000],
    [9_999_999_999, 3_600_000],
    [-5, 5_000],
  ])('a receiver that asks for %d ms gets %d at least', (asked, least) => {
    expect(retryDelayMs(1, seededPrng(1), asked)).toBeGreaterThanOrEqual(least);
    expect(retryDelayMs(1, seededPrng(1), asked)).toBeLessThanOrEqual(Math.max(least, 5_500));
  });

  it.each([
    ['120', 120_000],
    ['Thu, 01 Jan 1970 00:01:00 GMT', 60_000],
    ['-1', undefined],
    ['soon', undefined],
    ['Fri, 31 Dec 9999 23:59:59 GMT', 253_402_300_799_000],
    [undefined, undefined],
  ])('Retry-After: %s is %s ms', (header, ms) => {
    expect(retryAfterMsOf(header, 0)).toBe(ms);
  });
});
