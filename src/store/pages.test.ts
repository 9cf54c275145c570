import { describe, expect, it } from 'vitest';
import { createMemoryStore } from './memory/memory-store.ts';
import { pagesOf } from './pages.ts';
import { type Store, StoreError } from './store.ts';

const counted = (folder: string, count: number): string[] => Array.from({ length: count }, (_, i) => `${folder}/${i}`);

async function filled(keys: readonly string[]): Promise<Store> {
  const store = createMemoryStore();
  await store.commit(
    [],
    keys.map((key) => ({ key, value: new Uint8Array([1]) })),
  );
  return store;
}

async function keysIn(pages: AsyncIterable<{ entries: { key: string }[] }>): Promise<string[]> {
  const keys: string[] = [];
  for await (const { entries } of pages) for (const { key } of entries) keys.push(key);
  return keys;
}

describe('pagesOf', () => {
  it.each([1, 2, 3, 7, 100])(
    'tells all that is there once, in the order of keys, %i entries at a time',
    async (limit) => {
      const keys = [...counted('a', 7), ...counted('b', 3), 'c/0'];
      expect(await keysIn(pagesOf(await filled(keys), { limit }))).toEqual(keys);
    },
  );

  it.each([1, 2, 3, 7, 100])('tells what is under several prefixes once, %i entries at a time', async (limit) => {
    const store = await filled([...counted('a', 7), ...counted('b', 3), 'c/0', ...counted('d', 4)]);
    const told = await keysIn(pagesOf(store, { prefixes: ['d/', 'none/', 'a/', 'b/'], limit }));
    for (const folder of ['a', 'b', 'd'])
      expect(told.filter((key) => key.startsWith(folder))).toEqual(counted(folder, { a: 7, b: 3, d: 4 }[folder] ?? 0));
    expect(told).toHaveLength(14);
  });

  it('asks for the next page of one prefix and a page of two others while one is used', async () => {
    const store = await filled(['a', 'b', 'c', 'd'].flatMap((folder) => counted(folder, 4)));
    const asked: string[] = [];
    const observed: Store = Object.assign(Object.create(store) as Store, {
      list: async (prefix: string, options: { after?: string }) => {
        asked.push(options.after ?? prefix);
        return store.list(prefix, options);
      },
    });
    const pages = pagesOf(observed, { prefixes: ['a/', 'b/', 'c/', 'd/'], limit: 2 });
    await pages.next();
    expect(asked).toEqual(['a/', 'b/', 'c/', 'a/1']);
    await keysIn(pages);
    expect(asked.toSorted()).toEqual(
      ['a', 'b', 'c', 'd'].flatMap((folder) => [`${folder}/`, `${folder}/1`, `${folder}/3`]),
    );
  });

  it('throws what the store throws, and asks for nothing more', async () => {
    const store = await filled(counted('a', 4));
    let asked = 0;
    const failing: Store = Object.assign(Object.create(store) as Store, {
      list: async (prefix: string) => {
        asked += 1;
        if (prefix === 'b/') throw new StoreError('Unavailable', 'away');
        return store.list(prefix, { limit: 2 });
      },
    });
    await expect(keysIn(pagesOf(failing, { prefixes: ['a/', 'b/', 'c/'], limit: 2 }))).rejects.toThrow('away');
    const before = asked;
    await Promise.resolve();
    expect(asked).toBe(before);
    expect(asked).toBeLessThan(5);
  });
});
