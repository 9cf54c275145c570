import { expect, it } from 'vitest';
import { silentLogger } from '../../../base/log.ts';
import { createManualClock } from '../../../base/manual-clock.ts';
import { system } from '../../../base/system.ts';
import { encodeRecord } from '../../../core/state/codec.ts';
import { keys } from '../../../core/state/keys.ts';
import type { Cluster } from '../../../core/state/records.ts';
import { createMemoryStore } from '../../../store/memory/memory-store.ts';
import { StoreError } from '../../../store/store.ts';
import { pulled } from '../connections/sink.ts';
import { type News, type Topic, WatchFeed } from './watch-feed.ts';

function rig() {
  const store = createMemoryStore();
  const clock = createManualClock();
  let revision = 0;
  const feed = new WatchFeed({ store, clock, log: silentLogger, revision: () => revision, epoch: () => 'epoch-1' });
  let readers = 0;
  const watch = store.watch.bind(store);
  store.watch = (prefix, after, signal) => {
    readers += 1;
    return watch(prefix, after, signal);
  };
  const put = async (...names: string[]): Promise<void> => {
    const result = await store.commit(
      [],
      names.map((key) => ({ key, value: new Uint8Array([1]) })),
    );
    revision = result.ok ? result.revision : revision;
  };
  const follow = (topic: Topic | Topic[], after: number, signal: AbortSignal): AsyncGenerator<News, void> =>
    pulled((sink, over) => feed.follow([topic].flat(), after, sink, over), signal);
  return { store, clock, feed, follow, put, readers: () => readers };
}

const ending = () => new AbortController();
const keysOf = ({ value }: IteratorResult<News, void>): string[] => (value?.events ?? []).map(({ key }) => key);
const settle = async (): Promise<void> => {
  for (let turn = 0; turn < 3; turn++) await system.turn();
};

it('hands each its own topic, from one reading of the store', async () => {
  const { follow, put, readers } = rig();
  const over = ending();
  const all = follow({ kind: 'instance', project: undefined }, 0, over.signal);
  const ofA = follow({ kind: 'instance', project: 'a' }, 0, over.signal);
  const hosts = follow({ kind: 'host', project: undefined }, 0, over.signal);
  const next = [all.next(), ofA.next(), hosts.next()];
  await put('instances/a/1', 'instances/ab/1', 'hosts/h1', 'events/a/e1');
  const [first, second, third] = await Promise.all(next);
  expect([first, second, third].map((each) => each && keysOf(each))).toEqual([
    ['instances/a/1', 'instances/ab/1'],
    ['instances/a/1'],
    ['hosts/h1'],
  ]);
  expect(readers()).toBe(1);
  over.abort();
});

it('tells one who follows several kinds of all in order, whatever else there is', async () => {
  const { follow, put } = rig();
  const over = ending();
  const topics = (['host', 'instance'] as const).map((kind) => ({ kind, project: undefined }));
  const both = follow(topics, 0, over.signal);
  const next = both.next();
  await put('instances/a/1', 'images/tiny', 'hosts/h1', 'instances/a/2');
  expect(keysOf(await next)).toEqual(['instances/a/1', 'hosts/h1', 'instances/a/2']);
  over.abort();
  const late = ending();
  expect(keysOf(await follow(topics, 0, late.signal).next())).toEqual(['instances/a/1', 'hosts/h1', 'instances/a/2']);
  late.abort();
});

it('loses nothing of what comes while a watcher is busy, however much it is', async () => {
  const { follow, put } = rig();
  const over = ending();
  const watching = follow({ kind: 'instance', project: undefined }, 0, over.signal);
  const first = watching.next();
  await put('instances/a/0');
  const seen = keysOf(await first);
  let wanted = 1;
  for (let i = 0; i < 500; i++, wanted += 5) await put(...[1, 2, 3, 4, 5].map((n) => `instances/a/${i}.${n}`));
  await settle();
  let revision = 0;
  while (seen.length < wanted) {
    const { value } = await watching.next();
    const revisions = new Set(value?.events.map((event) => event.revision));
    for (const each of revisions)
      expect(value?.events.filter((event) => event.revision === each).length, 'a revision is never parted').toBe(5);
    seen.push(...(value?.events.map(({ key }) => key) ?? []));
    expect(value?.revision).toBeGreaterThan(revision);
    revision = value?.revision ?? 0;
  }
  expect(new Set(seen).size).toBe(wanted);
  // Level again, it receives new changes.
  const next = watching.next();
  await put('instances/a/last');
  expect(keysOf(await next)).toEqual(['instances/a/last']);
  over.abort();
});

it('says up to where nothing has come, now and then', async () => {
  const { follow, put, clock } = rig();
  const over = ending();
  const watching = follow({ kind: 'pool', project: undefined }, 0, over.signal);
  const next = watching.next();
  await put('instances/a/1');
  await put('instances/a/2');
  await settle();
  clock.advance(10_000);
  expect((await next).value).toEqual({ events: [], revision: 2 });
  over.abort();
});

it('tells of a gap in history, of a restore, and of a store that is gone', async () => {
  const { follow, put, store } = rig();
  const over = ending();
  for (let i = 0; i < 5; i++) await put(`instances/a/${i}`);
  await store.compact(4);
  const late = follow({ kind: 'instance', project: undefined }, 1, over.signal);
  await expect(late.next()).rejects.toMatchObject({ code: 'Compacted' });

  const live = follow({ kind: 'instance', project: undefined }, 5, over.signal);
  const restored = live.next();
  await settle();
  const cluster: Cluster = {
    kind: 'cluster',
    recordsVersion: 1,
    epoch: 'epoch-2',
    createdAtMs: 0,
    tokenSecret: '',
    operatorToken: '',
  };
  await store.commit([], [{ key: keys.cluster, value: encodeRecord(cluster) }]);
  await expect(restored).rejects.toMatchObject({ code: 'Compacted' });

  await put('instances/a/after');
  const last = follow({ kind: 'instance', project: undefined }, 7, over.signal).next();
  last.catch(() => undefined); // looked at below
  await settle();
  await store.close();
  await expect(last).rejects.toMatchObject({ code: 'Unavailable' });
  over.abort();
});

it('tells nobody of a revision that it was not given, when the feed ended and began anew for another', async () => {
  const { store, follow, put } = rig();
  let breakNow: (error: Error) => void = () => undefined;
  const watch = store.watch.bind(store);
  store.watch = async function* (prefix, after, signal) {
    const broken = new Promise<never>((_, reject) => (breakNow = reject));
    broken.catch(() => undefined);
    const batches = watch(prefix, after, signal)[Symbol.asyncIterator]();
    for (;;) {
      const batch = await Promise.race([batches.next(), broken]);
      if (batch.done) return;
      yield batch.value;
    }
  };
  const over = ending();
  const slow = follow({ kind: 'pool', project: undefined }, 0, over.signal);
  const first = slow.next();
  await settle();
  await put('pools/a');
  expect((await first).value?.revision).toBe(1);
  await put('pools/b'); // waits for the slow one
  await settle();
  breakNow(new StoreError('Unavailable', 'lost'));
  await settle();
  const other = follow({ kind: 'pool', project: undefined }, 2, over.signal).next();
  await settle();
  await put('pools/c');
  await other;
  expect((await slow.next()).value).toMatchObject({ events: [{ key: 'pools/b' }], revision: 2 });
  await expect(slow.next()).rejects.toMatchObject({ code: 'Unavailable' });
  over.abort();
});

it('ends when its watcher leaves, and begins anew for the next', async () => {
  const { follow, put, readers } = rig();
  for (let i = 0; i < 3; i++) {
    const over = ending();
    const watching = follow({ kind: 'host', project: undefined }, i, over.signal);
    const next = watching.next();
    await put(`hosts/${i}`);
    expect(keysOf(await next)).toEqual([`hosts/${i}`]);
    const end = watching.next();
    over.abort();
    expect((await end).done).toBe(true);
  }
  expect(readers()).toBe(3);
});
