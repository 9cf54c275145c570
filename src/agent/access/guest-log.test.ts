import { describe, expect, it } from 'vitest';
import { createManualClock } from '../../base/manual-clock.ts';
import { seededPrng } from '../../base/prng.ts';
import type { Driver } from '../drivers/driver.ts';
import { createFakeDriver } from '../drivers/fake/driver.ts';
import { createFakeWorld } from '../drivers/fake/world.ts';
import { followLog } from './guest-log.ts';

const instanceId = `inst_${'0'.repeat(26)}`;
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('the log of a guest that never stops talking', () => {
  const clock = createManualClock();
  const fake = createFakeDriver({ world: createFakeWorld({ clock }), host: 'h1', prng: seededPrng(1) });
  const guest = { instanceId, incarnation: 1, state: 'running', ready: true, ports: [], phases: [] } as const;
  /** One more byte whenever it is looked at. */
  const endless: Driver = {
    ...fake,
    guests: () => [guest],
    readLog: async (_id, offset) => ({ offset, data: new Uint8Array(1), size: offset + 1 }),
  };

  it('is given at once up to a bound, and from then on at a pace', async () => {
    const over = new AbortController();
    let pieces = 0;
    const reading = (async () => {
      const range = { instanceId, offset: 0, follow: true };
      for await (const _ of followLog({ driver: endless, clock, range }, over.signal)) pieces += 1;
    })();
    while (clock.nextDueMs() === undefined) await turn();
    const atOnce = pieces;
    expect(atOnce).toBeGreaterThan(1000);
    await clock.advanceSettled(2000, turn);
    expect(pieces - atOnce).toBe(500);
    over.abort();
    await reading;
  });

  it('ends with what there was, for who does not follow', async () => {
    const all: number[] = [];
    const range = { instanceId, offset: 0, follow: false };
    for await (const { data } of followLog({ driver: endless, clock, range }, new AbortController().signal))
      all.push(data.length);
    expect(all).toEqual([1]);
  });
});
