import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { Cache, type StoredEvent } from '../../core/state/cache.ts';
import { encodeRecord } from '../../core/state/codec.ts';
import { keys } from '../../core/state/keys.ts';
import type { AnyRecord } from '../../core/state/records.ts';
import { testImage } from '../../core/testing.ts';
import { createMemoryStore } from '../../store/memory/memory-store.ts';
import { Compacted, type Store, type Write } from '../../store/store.ts';
import { type ReadOptions, readState } from './read-state.ts';

const { signal } = new AbortController();

/** The least that is stored: by its key alone, and one that is listed as it was made. */
const lease = (host: string, renewedAtMs: number): AnyRecord => ({ kind: 'lease', host, epoch: 1, renewedAtMs });
const request = (createdAtMs: number): AnyRecord => ({
  kind: 'idempotency',
  resourceKey: 'instances/default/a',
  resourceId: 'inst_a',
  fingerprint: '',
  createdAtMs,
});
const put = (key: string, record: AnyRecord): Write => ({ key, value: encodeRecord(record) });
const gone = (key: string): Write => ({ key, value: null });
const text = (record: AnyRecord | null): string => JSON.stringify(record);

/** What was listed, with the changes laid over it. */
async function read(store: Store, options: Omit<ReadOptions, 'signal'> = {}) {
  const entries = new Map<string, StoredEvent>();
  const lay = (some: readonly StoredEvent[]): void => {
    for (const entry of some) {
      if (entry.value === null) entries.delete(entry.key);
      else entries.set(entry.key, entry);
    }
  };
  const take = (some: readonly StoredEvent[]): void => {
    expect(some.filter(({ key }) => entries.has(key))).toEqual([]);
    lay(some);
  };
  const { changes, revision } = await readState(store, take, { signal, ...options });
  lay(changes);
  return { entries, revision };
}

/** Commits the next of `changes` after each page. */
function changedMeanwhile(store: Store, changes: readonly (readonly Write[])[]): Store {
  const left = [...changes];
  return Object.assign(Object.create(store) as Store, {
    list: async (...of: Parameters<Store['list']>) => {
      const page = await store.list(...of);
      const next = left.shift();
      if (next) await store.commit([], next);
      return page;
    },
    watch: (...of: Parameters<Store['watch']>) => store.watch(...of),
  });
}

it('is what the store held at one revision, whatever was written while it was read', async () => {
  const names = ['a', 'b', 'c', 'd'].flatMap((name) => [keys.lease(name), keys.idempotency('p', name)]);
  const change = fc.record({ key: fc.constantFrom(...names), at: fc.integer({ min: 0, max: 9 }), there: fc.boolean() });
  const writeOf = ({ key, at, there }: { key: string; at: number; there: boolean }): Write =>
    there ? put(key, key.startsWith('leases/') ? lease(key, at) : request(at)) : gone(key);
  const commits = fc.array(fc.uniqueArray(change, { minLength: 1, maxLength: 3, selector: ({ key }) => key }));
  await fc.assert(
    fc.asyncProperty(commits, commits, fc.integer({ min: 1, max: 3 }), async (before, meanwhile, limit) => {
      const store = createMemoryStore();
      for (const writes of before) await store.commit([], writes.map(writeOf));
      const states = new Map<number, Map<string, string>>();
      const note = async (): Promise<void> => {
        const { entries, revision } = await store.list('');
        states.set(revision, new Map(entries.map(({ key, value }) => [key, Buffer.from(value).toString()])));
      };
      await note();
      const noted: Store = Object.assign(Object.create(store) as Store, {
        list: (...of: Parameters<Store['list']>) => store.list(...of),
        watch: (...of: Parameters<Store['watch']>) => store.watch(...of),
        commit: async (...of: Parameters<Store['commit']>) => {
          const result = await store.commit(...of);
          await note();
          return result;
        },
      });
      const changing = changedMeanwhile(
        noted,
        meanwhile.map((writes) => writes.map(writeOf)),
      );
      const { entries, revision } = await read(changing, { limit });
      const found = [...entries.values()].map(({ key, value }) => [key, text(value)]);
      expect(Object.fromEntries(found)).toEqual(Object.fromEntries(states.get(revision) ?? []));
    }),
    { numRuns: 300 },
  );
});

it('lists what is written once in the order in which it was made', async () => {
  const store = createMemoryStore();
  const made = ['m', 'z', 'a', 'q', 'b'].map((name) => keys.idempotency('p', name));
  for (const [at, key] of made.entries()) await store.commit([], [put(key, request(at))]);
  const later = put(keys.idempotency('p', 'k'), request(9));
  const { entries } = await read(changedMeanwhile(store, [[later]]), { limit: 2 });
  expect([...entries.keys()]).toEqual([...made, later.key]);
});

it('does not take for one state what was compacted in between', async () => {
  const store = createMemoryStore();
  await store.commit([], [put(keys.lease('a'), lease('a', 0))]);
  const compacting: Store = Object.assign(Object.create(changedMeanwhile(store, [[gone(keys.lease('a'))]])) as Store, {
    watch: () => {
      throw new Compacted(9);
    },
  });
  await expect(read(compacting)).rejects.toThrow(Compacted);
});

it('lists images as they were written, for the last one has an alias that others have, too', async () => {
  const store = createMemoryStore();
  const image = (name: string): Write => put(keys.image(name), testImage(name, { aliases: ['shared'] }));
  for (const name of ['b', 'c', 'a', 'b']) await store.commit([], [image(name)]);
  const { entries } = await read(store);
  expect([...entries.keys()]).toEqual(['c', 'a', 'b'].map(keys.image));
});

it.each(['list', 'watch'] as const)('ends with the reason of its signal, also in a %s', async (stopped) => {
  const store = createMemoryStore();
  for (const host of ['a', 'b', 'c']) await store.commit([], [put(keys.lease(host), lease(host, 0))]);
  const stop = new AbortController();
  const asked: string[] = [];
  const note = (what: typeof stopped): void => {
    asked.push(what);
    if (what === stopped) stop.abort(new Error('enough'));
  };
  const changed = changedMeanwhile(store, [[gone(keys.lease('a'))]]);
  const stopping: Store = Object.assign(Object.create(changed) as Store, {
    list: (...of: Parameters<Store['list']>) => {
      note('list');
      return changed.list(...of);
    },
    watch: (...of: Parameters<Store['watch']>) => {
      note('watch');
      return changed.watch(...of);
    },
  });
  await expect(readState(stopping, () => {}, { signal: stop.signal })).rejects.toThrow('enough');
  expect(asked.includes('watch')).toBe(stopped === 'watch');
});

it('passes over what a newer version made under a key of its own', async () => {
  const store = createMemoryStore();
  await store.commit([], [put(keys.lease('a'), lease('a', 0)), { key: 'newer/x', value: Buffer.from('?') }]);
  const changed = changedMeanwhile(store, [[{ key: 'newer/y', value: Buffer.from('?') }]]);
  expect([...(await read(changed)).entries.keys()]).toEqual([keys.lease('a')]);
});

it('begins anew, after it failed in the middle, as if nothing had been listed', async () => {
  const store = createMemoryStore();
  for (const host of ['a', 'b', 'c']) await store.commit([], [put(keys.lease(host), lease(host, 0))]);
  const cache = new Cache(() => 0);
  const told: string[] = [];
  cache.onCommitted((key) => told.push(key));
  const failing: Store = Object.assign(Object.create(store) as Store, {
    list: (...of: Parameters<Store['list']>) => {
      if (of[1]?.after === keys.lease('b')) throw new Compacted(9);
      return store.list(...of);
    },
  });
  await expect(readState(failing, cache.beginReset().take, { signal, limit: 1 })).rejects.toThrow(Compacted);
  expect([...cache.list('lease')].length).toBeGreaterThan(0);
  expect(told).toEqual([]);
  await store.commit([], [gone(keys.lease('a')), put(keys.lease('d'), lease('d', 0))]);
  const listing = cache.beginReset();
  const { changes, revision } = await readState(store, listing.take, { signal });
  listing.end(changes, revision);
  expect([...cache.list('lease')].map(({ value }) => value.host)).toEqual(['b', 'c', 'd']);
  expect(told.toSorted()).toEqual(['a', 'a', 'b', 'c', 'd'].map(keys.lease));
});
