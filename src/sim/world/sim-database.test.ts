import { describe, expect, it } from 'vitest';
import { seededPrng } from '../../base/prng.ts';
import { system } from '../../base/system.ts';
import { createMemoryStore } from '../../store/memory/memory-store.ts';
import { Database } from './sim-database.ts';
import { createTally } from '../batch/tally.ts';
import { Timeline } from './timeline.ts';

function begin(seed = 1, syncMsMax = 10) {
  const timeline = new Timeline(seededPrng(1));
  const base = createMemoryStore();
  const tally = createTally();
  const database = new Database({ base, timeline, prng: seededPrng(seed), tally, syncMsMax });
  const pass = async (ms: number): Promise<void> => {
    const untilMs = timeline.nowMs + ms;
    await system.turn();
    while (timeline.step(untilMs)) await system.turn();
  };
  return { base, database, store: database.store, pass, tally, timeline };
}
const write = { key: 'images/a', value: new Uint8Array([1]) };
const failure = (call: Promise<unknown>): Promise<unknown> => call.catch((error: unknown) => error);

describe('the database of a run', () => {
  it('has a commit when it is synced, not before', async () => {
    const { base, store, pass } = begin();
    const commit = store.commit([], [write]);
    expect(await base.get(write.key)).toBeNull();
    await pass(10);
    expect(await commit).toEqual({ ok: true, revision: 1 });
  });

  it('loses what was under way when it crashes, or not, and tells nobody which; what was answered stays', async () => {
    const survived = new Set<boolean>();
    for (let seed = 1; seed < 20; seed++) {
      const { base, database, store, pass } = begin(seed, 1000);
      const first = store.commit([], [{ key: 'images/first', value: new Uint8Array([1]) }]);
      await pass(1000);
      expect(await first).toMatchObject({ ok: true });
      const second = failure(store.commit([], [write]));
      await system.turn();
      database.crash(500);
      expect(await second).toMatchObject({ code: 'Unavailable', outcome: 'unknown' });
      expect(await base.get('images/first')).not.toBeNull();
      survived.add((await base.get(write.key)) !== null);
      await pass(2000);
    }
    expect(survived.size).toBe(2);
  });

  it('crashes under the next commit, when told to', async () => {
    const { database, store, pass } = begin();
    database.crashUnderNext({ downMs: 500, onCrash: () => {} });
    const first = failure(store.commit([], [write]));
    await pass(20);
    expect(database.away).toHaveLength(1);
    expect(await first).toBeDefined();
    await pass(500);
    const second = store.commit([], [{ key: 'images/b', value: write.value }]);
    await pass(20);
    expect(await second).toMatchObject({ ok: true });
  });

  it('refuses everything while it is down, breaks every watch, and comes back', async () => {
    const { database, store, pass } = begin();
    const watching = failure(
      (async () => {
        for await (const _ of store.watch('', 0, new AbortController().signal));
      })(),
    );
    await system.turn();
    database.leave(5000);
    expect(await watching).toMatchObject({ code: 'Unavailable' });
    expect(await failure(store.get('images/a'))).toMatchObject({ code: 'Unavailable' });
    expect(await failure(store.commit([], [write]))).toMatchObject({ code: 'Unavailable', outcome: 'none' });
    await pass(5000);
    expect(await store.get('images/a')).toBeNull();
    expect(database.away).toEqual([{ fromMs: 0, toMs: 5000 }]);
  });
});
