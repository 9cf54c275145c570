import { describe, expect, it } from 'vitest';
import { seededPrng } from '../../base/prng.ts';
import { system } from '../../base/system.ts';
import { createMemoryStore } from '../../store/memory/memory-store.ts';
import { StoreError } from '../../store/store.ts';
import { createChances } from './chances.ts';
import { createProcessClock } from './process-clock.ts';
import { SimStore } from './sim-store.ts';
import { createTally } from '../batch/tally.ts';
import { Timeline } from './timeline.ts';
import type { Weather } from './weather.ts';

function begin(weather: Partial<Weather['store']> = {}, seed = 1) {
  const timeline = new Timeline(seededPrng(1));
  const clock = createProcessClock(timeline);
  const base = createMemoryStore();
  const tally = createTally();
  const store = new SimStore({
    base,
    clock,
    timeline,
    prng: seededPrng(seed),
    tally,
    chances: createChances({ tally, prng: seededPrng(3) }),
    weather: () => ({
      latencyMsMean: 5,
      watchLagMsMean: 5,
      unavailable: 0,
      unknown: 0,
      slow: 0,
      watchBroken: 0,
      ...weather,
    }),
  });
  const pass = async (ms: number): Promise<void> => {
    const untilMs = timeline.nowMs + ms;
    await system.turn();
    while (timeline.step(untilMs)) await system.turn();
  };
  return { base, store, clock, pass };
}
const write = { key: 'images/a', value: new Uint8Array([1]) };

describe('the store as a control plane sees it', () => {
  it('answers late, and right', async () => {
    const { store, pass } = begin();
    const commit = store.commit([], [write]);
    await pass(1000);
    expect(await commit).toEqual({ ok: true, revision: 1 });
  });

  it('fails without having written', async () => {
    const { base, store, pass } = begin({ unavailable: 1000 });
    const failure = store.commit([], [write]).catch((error: unknown) => error);
    await pass(1000);
    expect(await failure).toMatchObject({ code: 'Unavailable', outcome: 'none' });
    expect(await base.get(write.key)).toBeNull();
  });

  it('fails without a word on whether it has written; when it has, sometimes only later', async () => {
    const writtenWhenTold = new Set<boolean>();
    for (let seed = 1; seed < 20; seed++) {
      const { base, store, pass } = begin({ unknown: 1000 }, seed);
      void store.commit([], [write]).then(
        () => expect.unreachable(),
        async (error: unknown) => {
          expect(error).toBeInstanceOf(StoreError);
          expect(error).toMatchObject({ outcome: 'unknown' });
          writtenWhenTold.add((await base.get(write.key)) !== null);
        },
      );
      await pass(2000);
      expect(await base.get(write.key)).not.toBeNull();
    }
    expect(writtenWhenTold).toEqual(new Set([true, false]));
  });

  it('never answers a process that died; what was on its way may still be carried out', async () => {
    const written = new Set<boolean>();
    for (let seed = 1; seed < 20; seed++) {
      const { base, store, clock, pass } = begin({}, seed);
      void store.commit([], [write]).then(() => expect.unreachable());
      clock.kill();
      await pass(2000);
      written.add((await base.get(write.key)) !== null);
    }
    expect(written).toEqual(new Set([true, false]));
  });

  it('gives a watcher everything, late and in order', async () => {
    const { base, store, pass } = begin();
    const seen: number[] = [];
    const end = new AbortController();
    const watching = (async () => {
      for await (const batch of store.watch('', 0, end.signal)) seen.push(...batch.map(({ revision }) => revision));
    })();
    for (let i = 1; i <= 5; i++) await base.commit([], [{ ...write, value: new Uint8Array([i]) }]);
    expect(seen).toEqual([]);
    await pass(1000);
    expect(seen).toEqual([1, 2, 3, 4, 5]);
    end.abort();
    await pass(1000);
    await watching;
  });
});
