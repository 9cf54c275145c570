import { describe, expect, it } from 'vitest';
import { createManualClock } from '../manual-clock.ts';
import { createPace } from './pace.ts';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('a pace', () => {
  const clock = createManualClock();
  const pace = createPace({ clock, perSecond: 10, atOnceMax: 5 });

  it('lets so much be done at once, then so much a second, and forgives what was not used', async () => {
    const done: number[] = [];
    const work = (async () => {
      for (let i = 1; i <= 8; i++) {
        await pace.take(1);
        done.push(clock.monotonicMs());
      }
    })();
    await clock.advanceSettled(1000, turn);
    await work;
    expect(done).toEqual([0, 0, 0, 0, 0, 100, 200, 300]);
    await clock.advanceSettled(60_000, turn);
    const atMs = clock.monotonicMs();
    for (let i = 1; i <= 5; i++) await pace.take(1);
    expect(clock.monotonicMs()).toBe(atMs);
  });

  it('holds nobody who gives up', async () => {
    const given = new AbortController();
    const late = createPace({ clock, perSecond: 1, atOnceMax: 1 }).take(1000, given.signal);
    given.abort();
    await late;
    expect(given.signal.aborted).toBe(true);
  });
});
