import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { storeConformance } from '../conformance.ts';
import { pagesOf } from '../pages.ts';
import type { Store } from '../store.ts';
import { modelConformance } from '../test-model.ts';
import { openEtcdStore } from './etcd-store.ts';
import { startEtcd, type TestEtcd } from './test-etcd.ts';

let etcd: TestEtcd;
beforeAll(async () => {
  etcd = await startEtcd();
});
afterAll(() => etcd.stop());

storeConformance({
  name: 'etcd',
  durable: true,
  shared: true,
  async open() {
    const rest = etcd.rest();
    const opened: Store[] = [];
    const another = async (): Promise<Store> => {
      const store = await openEtcdStore({ rest });
      opened.push(store);
      return store;
    };
    const store = await another();
    return {
      store,
      another,
      async reopen() {
        await opened.at(-1)?.close();
        return another();
      },
      async dispose() {
        for (const one of opened) await one.close();
      },
    };
  },
});

describe('etcd store, asked through three handles in turn', () => {
  modelConformance(async () => {
    const rest = etcd.rest();
    const handles = await Promise.all([1, 2, 3].map(() => openEtcdStore({ rest })));
    return inTurn(handles);
  }, 40);
});

it('refuses a prefix under which there is no store, when one must be there', async () => {
  const rest = etcd.rest();
  await expect(openEtcdStore({ rest, mustExist: true })).rejects.toThrow('there is no store under prefix');
  await (await openEtcdStore({ rest })).close();
  await (await openEtcdStore({ rest, mustExist: true })).close();
});

it('tells all of two long lists that are read in turns, page by page', async () => {
  const store = await openEtcdStore({ rest: etcd.rest() });
  const value = Buffer.alloc(8);
  const keysOf = (folder: string) =>
    Array.from({ length: 3_000 }, (_, i) => `${folder}/${String(i * 7).padStart(6, '0')}`);
  const [a, b] = [keysOf('a'), keysOf('b')];
  for (const keys of [a, b])
    await store.commit(
      [],
      keys.map((key) => ({ key, value })),
    ); // one commit each
  await store.compact(3);
  const told: string[] = [];
  for await (const { entries } of pagesOf(store, { prefixes: ['b/', 'a/'], limit: 600 })) // enough for a guess how far the next should reach
    told.push(...entries.map(({ key }) => key));
  expect(told.filter((key) => key.startsWith('a'))).toEqual(a);
  expect(told.filter((key) => key.startsWith('b'))).toEqual(b);
  expect(told).toHaveLength(a.length + b.length);
  await store.close();
});

function inTurn(stores: readonly Store[]): Store {
  let turn = 0;
  const next = (): Store => {
    const store = stores[turn++ % stores.length];
    if (!store) throw new Error('there is no store');
    return store;
  };
  return {
    get: (key) => next().get(key),
    list: (prefix, options) => next().list(prefix, options),
    commit: (conditions, writes) => next().commit(conditions, writes),
    watch: (prefix, after, signal) => next().watch(prefix, after, signal),
    compact: (before) => next().compact(before),
    close: async () => void (await Promise.all(stores.map((store) => store.close()))),
  };
}
it('knows of no key that it has not asked for, and yet lets nobody make one that is there', async () => {
  const rest = etcd.rest();
  const value = new TextEncoder().encode('value');
  const before = await openEtcdStore({ rest });
  await before.commit([], [{ key: 'there', value }]);
  await before.commit([], [{ key: 'gone', value }]);
  await before.commit([], [{ key: 'gone', value: null }]);
  await before.compact(4); // the entries have followed, so the next process finds nothing of them in the log
  await before.close();

  const store = await openEtcdStore({ rest });
  const absent = (...keys: string[]) => keys.map((key) => ({ key, ifRevision: 0 }));
  expect(await store.commit(absent('there'), [{ key: 'there', value }])).toEqual({ ok: false, key: 'there' });
  expect(await store.commit(absent('gone', 'never'), [{ key: 'never', value }])).toEqual({ ok: true, revision: 4 });
  expect(await store.commit(absent('never'), [])).toEqual({ ok: false, key: 'never' });
  await store.close();

  const another = await openEtcdStore({ rest });
  const together = await Promise.all([
    another.commit(absent('new'), [{ key: 'new', value }]),
    another.commit(absent('there', 'other'), [{ key: 'other', value }]),
    another.commit(absent('new', 'more'), [{ key: 'more', value }]),
    another.commit(absent('more'), [{ key: 'more', value: null }]),
  ]);
  expect(together).toEqual([
    { ok: true, revision: 5 },
    { ok: false, key: 'there' },
    { ok: false, key: 'new' },
    { ok: true, revision: 5 },
  ]);
  await another.close();
});
