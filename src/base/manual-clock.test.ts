import { describe, expect, it } from 'vitest';
import { sleep } from './clock.ts';
import { createManualClock } from './manual-clock.ts';

describe('the manual clock', () => {
  it('fires timers in the order of their due time, then of their setting', () => {
    const clock = createManualClock();
    const fired: string[] = [];
    clock.setTimer(20, () => fired.push('c'));
    clock.setTimer(10, () => fired.push('a'));
    clock.setTimer(10, () => fired.push('b'));
    clock.advance(20);
    expect(fired).toEqual(['a', 'b', 'c']);
  });

  it('shows each timer the time it was set for', () => {
    const clock = createManualClock(1000);
    const seen: number[] = [];
    clock.setTimer(5, () => {
      seen.push(clock.nowMs());
      clock.setTimer(5, () => seen.push(clock.nowMs()));
    });
    clock.advance(100);
    expect(seen).toEqual([1005, 1010]);
    expect(clock.nowMs()).toBe(1100);
    expect(clock.monotonicMs()).toBe(100);
  });

  it('does not fire what was cancelled', () => {
    const clock = createManualClock();
    const timer = clock.setTimer(5, () => expect.unreachable());
    timer.cancel();
    clock.advance(10);
    expect(clock.nextDueMs()).toBeUndefined();
  });

  it('lets promises do their work between two timers', async () => {
    const clock = createManualClock();
    const seen: number[] = [];
    const walk = (async () => {
      for (let step = 0; step < 3; step++) {
        await sleep(clock, 10);
        seen.push(clock.monotonicMs());
      }
    })();
    await clock.advanceSettled(30, () => new Promise((resolve) => setImmediate(resolve)));
    await walk;
    expect(seen).toEqual([10, 20, 30]);
  });
});
