import { afterEach, describe, expect, it } from 'vitest';
import { silentLogger } from '../../base/log.ts';
import { createManualClock } from '../../base/manual-clock.ts';
import { system } from '../../base/system.ts';
import { createMemoryStore } from '../../store/memory/memory-store.ts';
import { Compacted, type Store } from '../../store/store.ts';
import { Compaction } from './compaction.ts';
import { startTestServer } from '../testing.ts';

const minuteMs = 60_000;

/** A store in which one change is made a minute. */
function kept(policy: { historyKeptMs: number; historyRevisionsMax: number }, wrap = (store: Store): Store => store) {
  const clock = createManualClock();
  const store = createMemoryStore();
  let revision = 0;
  const compaction = new Compaction({
    store: wrap(store),
    clock,
    log: silentLogger,
    revision: () => revision,
    leads: () => true,
    policy,
  });
  compaction.start();
  return {
    compaction,
    async minutes(count: number): Promise<void> {
      for (let i = 0; i < count; i++) {
        const result = await store.commit([], [{ key: 'a/b', value: new Uint8Array([i % 256]) }]);
        if (result.ok) revision = result.revision;
        await clock.advanceSettled(minuteMs, system.turn);
        await system.turn();
      }
    },
    /** The lowest revision from which a watch still gets everything. */
    async watchedFrom(): Promise<number> {
      const stop = new AbortController();
      for (let after = 0; ; after++) {
        try {
          await store.watch('', after, stop.signal)[Symbol.asyncIterator]().next();
          stop.abort();
          return after;
        } catch (error) {
          if (!(error instanceof Compacted)) throw error;
        }
      }
    },
  };
}

describe('the history of the store', () => {
  it('is kept for its time, and then forgotten', async () => {
    const { minutes, watchedFrom } = kept({ historyKeptMs: 10 * minuteMs, historyRevisionsMax: 1_000 });
    await minutes(9);
    expect(await watchedFrom()).toBe(0);
    await minutes(21);
    expect(await watchedFrom()).toBe(20); // the change of minute 20 was there at its end, ten minutes ago
  });

  it('is never longer than so many revisions', async () => {
    const { minutes, watchedFrom } = kept({ historyKeptMs: 1_000 * minuteMs, historyRevisionsMax: 5 });
    await minutes(30);
    expect(await watchedFrom()).toBe(25);
  });

  it('is forgotten later when the store could not do it at once', async () => {
    let failures = 3;
    const { minutes, watchedFrom } = kept({ historyKeptMs: 1_000 * minuteMs, historyRevisionsMax: 5 }, (store) => ({
      ...bound(store),
      compact: (before) => (failures-- > 0 ? Promise.reject(new Error('away')) : store.compact(before)),
    }));
    await minutes(7);
    expect(await watchedFrom()).toBe(0);
    await minutes(3);
    expect(await watchedFrom()).toBe(5);
  });

  it('is left alone once it was told to stop', async () => {
    const { compaction, minutes, watchedFrom } = kept({ historyKeptMs: minuteMs, historyRevisionsMax: 5 });
    await compaction.stop();
    await minutes(20);
    expect(await watchedFrom()).toBe(0);
  });
});

function bound(store: Store): Store {
  return {
    get: (key) => store.get(key),
    list: (prefix, options) => store.list(prefix, options),
    commit: (conditions, writes) => store.commit(conditions, writes),
    watch: (prefix, after, signal) => store.watch(prefix, after, signal),
    compact: (before) => store.compact(before),
    close: () => store.close(),
  };
}

describe('a watcher over HTTP', () => {
  let server: Awaited<ReturnType<typeof startTestServer>> | undefined;
  afterEach(() => server?.close());

  it('from before what is kept is told Compacted, and goes on from a new list', async () => {
    const clock = createManualClock();
    server = await startTestServer({ clock, policy: { historyKeptMs: 5 * minuteMs } });
    const { client } = server;
    const { revision: old } = await client.list('pool');
    for (let i = 0; i < 3; i++) await client.create('pool', { metadata: { name: `p${i}` }, spec: {} });
    await clock.advanceSettled(10 * minuteMs, system.turn);
    await system.turn();
    const firstChangeAfter = async (revision: number): Promise<void> => {
      for await (const { type } of client.watch('pool', { revision }, new AbortController().signal))
        if (type === 'put') return;
    };
    await expect(firstChangeAfter(old)).rejects.toMatchObject({ code: 'Compacted' });
    const { items, revision } = await client.list('pool');
    expect(items).toHaveLength(3);
    const watching = firstChangeAfter(revision);
    await client.create('pool', { metadata: { name: 'p3' }, spec: {} });
    await watching;
  });
});
