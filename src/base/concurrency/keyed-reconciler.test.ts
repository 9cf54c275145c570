import { describe, expect, it } from 'vitest';
import { createManualClock } from '../manual-clock.ts';
import { seededPrng } from '../prng.ts';
import { KeyedReconciler, type Step } from './keyed-reconciler.ts';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('a keyed reconciler', () => {
  const start = (step: (key: string) => Promise<Step>, workersMax = 4) => {
    const clock = createManualClock();
    const events: string[] = [];
    const delays: number[] = [];
    const reconciler = new KeyedReconciler<string>({
      clock,
      prng: seededPrng(1),
      workersMax,
      stepsMax: 3,
      stuck: 'it never rests',
      step,
      rested: (key) => events.push(`${key} rests`),
      retrying: (key, error, delayMs) => {
        events.push(`${key}: ${error instanceof Error ? error.message : 'odd'}`);
        delays.push(delayMs);
      },
    });
    return { clock, events, delays, reconciler };
  };

  it('takes steps until one rests', async () => {
    const steps: Step[] = ['go-on', 'go-on', 'rest'];
    const { reconciler, events } = start(async () => steps.shift() ?? 'rest');
    reconciler.add('a');
    await turn();
    expect(steps).toEqual([]);
    expect(events).toEqual(['a rests']);
  });

  it('counts too many steps without a rest as a failure', async () => {
    const { reconciler, events } = start(async () => 'go-on');
    reconciler.add('a');
    await turn();
    expect(events).toEqual(['a: after 3 steps it is still not what is wanted; it never rests']);
  });

  it('tries again after pauses that grow, and after a success begins with short ones', async () => {
    let broken = true;
    const { reconciler, clock, delays, events } = start(async () => {
      if (broken) throw new Error('broken');
      return 'rest';
    });
    reconciler.add('a');
    await clock.advanceSettled(300_000, turn);
    expect(Math.max(...delays)).toBeGreaterThan(8 * (delays[0] ?? Infinity));
    expect(Math.max(...delays)).toBeLessThanOrEqual(60_000);
    broken = false;
    await clock.advanceSettled(60_000, turn);
    expect(events.at(-1)).toBe('a rests');
    broken = true;
    reconciler.add('a');
    await turn();
    expect(delays.at(-1)).toBeLessThanOrEqual(1000);
  });

  it('begins no further step once stopped, and closes when the steps under way have ended', async () => {
    const gate = Promise.withResolvers<Step>();
    let steps = 0;
    const { reconciler, events } = start(() => {
      steps += 1;
      return gate.promise;
    });
    reconciler.add('a');
    await turn();
    reconciler.stop();
    expect(reconciler.closed).toBe(true);
    let closed = false;
    const closing = reconciler.close().then(() => (closed = true));
    await turn();
    expect(closed).toBe(false);
    gate.resolve('go-on');
    await closing;
    expect(steps).toBe(1);
    expect(events).toEqual(['a rests']);
  });

  it('reports no failure of a step that was cut short by the close', async () => {
    const gate = Promise.withResolvers<Step>();
    const { reconciler, events } = start(() => gate.promise);
    reconciler.add('a');
    await turn();
    const closing = reconciler.close();
    gate.reject(new Error('cut short'));
    await closing;
    expect(events).toEqual([]);
  });
});
