import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Rates } from './rates.ts';

function at() {
  const now = { ms: 0 };
  const clock = { nowMs: () => now.ms, monotonicMs: () => now.ms, setTimer: () => ({ cancel() {} }) };
  return { now, clock };
}

describe('a rate limiter', () => {
  it('lets a burst through, and then as many as its rate allows', () => {
    const { now, clock } = at();
    const rates = new Rates({ perSecond: 10, burst: 3 }, { clock });
    expect([1, 2, 3].map(() => rates.take('a'))).toEqual([0, 0, 0]);
    expect(rates.take('a')).toBeCloseTo(100);
    now.ms = 60;
    expect(rates.take('a')).toBeCloseTo(40);
    now.ms = 100;
    expect(rates.take('a')).toBe(0);
    expect(rates.take('a')).toBeCloseTo(100);
    now.ms = 10_000;
    expect([1, 2, 3].map(() => rates.take('a'))).toEqual([0, 0, 0]);
    expect(rates.take('a')).toBeGreaterThan(0);
  });

  it('counts each key by itself', () => {
    const { clock } = at();
    const rates = new Rates({ perSecond: 1, burst: 1 }, { clock });
    expect(['a', 'b', 'a'].map((key) => rates.take(key) === 0)).toEqual([true, true, false]);
  });

  it('forgets the key that was used least recently', () => {
    const { clock } = at();
    const rates = new Rates({ perSecond: 1, burst: 1 }, { clock, keysMax: 2 });
    for (const key of ['a', 'b', 'c']) rates.take(key);
    expect(['b', 'c', 'a'].map((key) => rates.take(key) === 0)).toEqual([false, false, true]);
  });

  it('never lets more through than burst and rate allow, and never fewer', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 1000 }),
        fc.integer({ min: 1, max: 50 }),
        fc.array(fc.integer({ min: 0, max: 300 }), { minLength: 1, maxLength: 200 }),
        (perSecond, burst, pausesMs) => {
          const { now, clock } = at();
          const rates = new Rates({ perSecond, burst }, { clock });
          let level = burst; // the bucket as textbooks have it
          for (const pauseMs of pausesMs) {
            now.ms += pauseMs;
            level = Math.min(burst, level + (pauseMs * perSecond) / 1_000);
            const taken = rates.take('a') === 0;
            if (Math.abs(level - 1) > 0.01) expect(taken).toBe(level >= 1);
            if (taken) level -= 1;
          }
        },
      ),
    );
  });
});
