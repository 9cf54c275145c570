// What every backend must do, as vitest cases: call it from the backend's own test file with a way to open an empty store.
// It checks the contract of store.ts and nothing that is a backend's own business.

import { afterEach, describe, expect, it } from 'vitest';
import { modelConformance } from './test-model.ts';
import { Compacted, type Revision, type Store, type StoreErrorCode, type WatchEvent } from './store.ts';

export interface StoreUnderTest {
  readonly store: Store;
  /** Closes the store and opens the same data again; only for backends that keep data. */
  readonly reopen?: () => Promise<Store>;
  /** Opens the same data once more, as another process does; only for backends that several processes may have open at once. */
  readonly another?: () => Promise<Store>;
  /** Closes what is still open and removes all traces. */
  dispose(): Promise<void>;
}

export interface StoreFactory {
  readonly name: string;
  /** True when data outlives `close`; then `reopen` is there. */
  readonly durable: boolean;
  /** True when several processes may have it open at once; then `another` is there. */
  readonly shared?: boolean;
  /** Random histories the model test plays; default 40. */
  readonly modelRuns?: number;
  /** Opens a store that is empty, at revision 0. */
  open(): Promise<StoreUnderTest>;
}

export function storeConformance(factory: StoreFactory): void {
  describe(`${factory.name} store`, () => {
    let opened: StoreUnderTest[] = [];
    const open = async (): Promise<StoreUnderTest> => {
      const one = await factory.open();
      opened.push(one);
      return one;
    };
    const openStore = async (): Promise<Store> => (await open()).store;
    afterEach(async () => {
      for (const one of opened) await one.dispose();
      opened = [];
    });

    describe('commit', () => {
      commitCases(openStore);
    });
    describe('list', () => {
      listCases(openStore);
    });
    describe('watch', () => {
      watchCases(openStore);
    });
    describe('compact', () => {
      compactCases(openStore);
    });
    describe('refuses', () => {
      refusalCases(openStore);
    });
    describe.runIf(factory.durable)('opened again', () => {
      durabilityCases(open);
    });
    describe.runIf(factory.shared)('opened by several', () => {
      sharedCases(open);
    });
    describe('beside a sequential model', () => {
      modelConformance(openStore, factory.modelRuns ?? 40);
    });
  });
}

function commitCases(open: () => Promise<Store>): void {
  it('begins empty, at revision 0', async () => {
    const store = await open();
    expect(await store.get('a')).toBeNull();
    expect(await store.list('')).toEqual({ entries: [], revision: 0 });
  });

  it('gives each commit the next revision, and each entry the revision of its last write', async () => {
    const store = await open();
    expect(await put(store, { a: 'one', b: 'two' })).toBe(1);
    expect(await put(store, { b: 'three' })).toBe(2);
    expect(await store.get('a')).toEqual({ key: 'a', value: bytes('one'), revision: 1 });
    expect(await store.get('b')).toEqual({ key: 'b', value: bytes('three'), revision: 2 });
  });

  it.each([
    { name: 'absent, as asked', ifRevision: 0, key: 'absent', ok: true },
    { name: 'absent, but wanted at a revision', ifRevision: 1, key: 'absent', ok: false },
    { name: 'present at the asked revision', ifRevision: 2, key: 'present', ok: true },
    { name: 'present at a later revision', ifRevision: 1, key: 'present', ok: false },
    { name: 'present at an earlier revision', ifRevision: 3, key: 'present', ok: false },
    { name: 'present, but wanted absent', ifRevision: 0, key: 'present', ok: false },
    { name: 'deleted, wanted absent', ifRevision: 0, key: 'deleted', ok: true },
    { name: 'deleted, wanted at its last revision', ifRevision: 1, key: 'deleted', ok: false },
  ])('checks a condition on a key that is $name', async ({ key, ifRevision, ok }) => {
    const store = await open();
    await put(store, { present: 'x', deleted: 'x' }); // revision 1
    await put(store, { present: 'y' }); // 2
    await remove(store, 'deleted'); // 3
    const result = await store.commit([{ key, ifRevision }], [{ key: 'written', value: bytes('z') }]);
    expect(result).toEqual(ok ? { ok: true, revision: 4 } : { ok: false, key });
    expect(await store.get('written')).toEqual(ok ? { key: 'written', value: bytes('z'), revision: 4 } : null);
  });

  it('names the first condition that fails, in the order given, and writes nothing', async () => {
    const store = await open();
    await put(store, { a: 'x' });
    const conditions = [
      { key: 'a', ifRevision: 1 },
      { key: 'c', ifRevision: 7 },
      { key: 'b', ifRevision: 7 },
    ];
    expect(await store.commit(conditions, [{ key: 'a', value: bytes('y') }])).toEqual({ ok: false, key: 'c' });
    expect(await store.list('')).toEqual({ entries: [{ key: 'a', value: bytes('x'), revision: 1 }], revision: 1 });
  });

  it('answers the current revision to a commit without writes, and uses none', async () => {
    const store = await open();
    await put(store, { a: 'x' });
    expect(await store.commit([{ key: 'a', ifRevision: 1 }], [])).toEqual({ ok: true, revision: 1 });
    expect(await store.commit([{ key: 'a', ifRevision: 0 }], [])).toEqual({ ok: false, key: 'a' });
    expect(await put(store, { b: 'x' })).toBe(2);
  });

  it('deletes, and uses no revision when only absent keys are deleted', async () => {
    const store = await open();
    await put(store, { a: 'x' });
    expect(await remove(store, 'a')).toBe(2);
    expect(await store.get('a')).toBeNull();
    expect(await remove(store, 'a')).toBe(2);
    expect((await store.list('')).revision).toBe(2);
  });

  it.each([
    ['empty', new Uint8Array(0)],
    ['every byte', Uint8Array.from({ length: 256 }, (_, i) => i)],
    ['a megabyte', new Uint8Array(1024 * 1024).fill(0xa5)],
  ])('keeps values as they are: %s', async (_, value) => {
    const store = await open();
    await store.commit([], [{ key: 'a', value }]);
    expect((await store.get('a'))?.value).toEqual(value);
    expect((await store.list('')).entries[0]?.value).toEqual(value);
    expect((await collect(store, { prefix: '', after: 0, through: 1 }))[0]?.value).toEqual(value);
  });

  it('has taken its copy when commit returns: the caller may use its bytes again', async () => {
    const store = await open();
    const value = bytes('before');
    const committed = store.commit([], [{ key: 'a', value }]);
    value.fill(0);
    await committed;
    expect((await store.get('a'))?.value).toEqual(bytes('before'));
  });

  it('answers many commits asked for at once, each with its own revision', async () => {
    const store = await open();
    const revisions = await Promise.all(Array.from({ length: 100 }, (_, i) => put(store, { [`k${i}`]: 'x' })));
    expect(revisions.sort((a, b) => a - b)).toEqual(Array.from({ length: 100 }, (_, i) => i + 1));
  });

  it('lets exactly one of many win a key, and fails only the others', async () => {
    const store = await open();
    const results = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        store.commit([{ key: 'lease', ifRevision: 0 }], [{ key: 'lease', value: bytes(`holder ${i}`) }]),
      ),
    );
    expect(results.filter((result) => result.ok)).toEqual([{ ok: true, revision: 1 }]);
    expect(results.filter((result) => !result.ok)).toEqual(
      Array.from({ length: 19 }, () => ({ ok: false, key: 'lease' })),
    );
    const others = await Promise.all([put(store, { other: 'x' }), store.commit([{ key: 'lease', ifRevision: 0 }], [])]);
    expect(others).toEqual([2, { ok: false, key: 'lease' }]);
  });

  it('refuses everything after close, and closes twice', async () => {
    const store = await open();
    const last = put(store, { a: 'x' });
    await store.close();
    expect(await last).toBe(1); // close finishes what was begun
    await store.close();
    await expectStoreError('Closed', store.get('a'));
    await expectStoreError('Closed', store.list(''));
    await expectStoreError('Closed', store.commit([], []));
    await expectStoreError('Closed', store.compact(0));
    await expectStoreError('Closed', collect(store, { prefix: '', after: 0, through: 1 }));
  });
}

function listCases(open: () => Promise<Store>): void {
  it('answers thousands of keys of many kinds in pages, and several lists at once', async () => {
    const store = await open();
    const truth = new Map<string, string>();
    const count = (n: number, keyOf: (i: number) => string): string[] => Array.from({ length: n }, (_, i) => keyOf(i));
    const keys = [
      ...count(2_000, (i) => `allocations/inst_01m8${(i * 7).toString(32).padStart(8, '0')}.1`),
      ...count(700, (i) => `events/team-${i % 9}/evt_${i.toString(32).padStart(6, '0')}`),
      ...count(1_200, (i) => `idempotency/team-${i % 30}/request-${i}`),
      ...count(1_100, (i) => `instances/team-${i % 3}/web-${i}`),
    ];
    const write = async (some: readonly string[], text: string | null): Promise<void> => {
      const value = text === null ? null : bytes(text.padEnd(1_200, '.'));
      const done = await store.commit(
        [],
        some.map((key) => ({ key, value })),
      );
      expect(done.ok).toBe(true);
      for (const key of some) {
        if (text === null) truth.delete(key);
        else truth.set(key, text);
      }
    };
    for (let i = 0; i < keys.length; i += 200) await write(keys.slice(i, i + 200), `first ${i}`);
    // Some written again, some deleted, some new: among them the ends of kinds and of pages.
    await write(
      keys.filter((_, i) => i % 97 === 0),
      'anew',
    );
    await write(
      keys.filter((_, i) => i % 101 === 0 || i === 1_999 || (i > 2_600 && i < 2_710)),
      null,
    );
    await write(['allocations/zzz', 'events/', 'hosts/h1', 'instances/team-0', 'z'], 'more');

    const listed = async (prefix: string, limit: number): Promise<[string, string][]> => {
      const found: [string, string][] = [];
      for (let after: string | undefined, more = true; more; after = found.at(-1)?.[0]) {
        const { entries } = await store.list(prefix, { limit, ...(after === undefined ? {} : { after }) });
        for (const { key, value } of entries) found.push([key, Buffer.from(value).toString().replace(/\.+$/, '')]);
        more = entries.length === limit;
      }
      return found;
    };
    const wanted = (prefix: string): [string, string][] =>
      [...truth].filter(([key]) => key.startsWith(prefix)).sort(([a], [b]) => (a < b ? -1 : 1));
    for (const limit of [600, 1_111, 2_500]) expect(await listed('', limit)).toEqual(wanted(''));
    const [all, some] = await Promise.all([listed('', 700), listed('i', 800)]);
    expect(all).toEqual(wanted(''));
    expect(some).toEqual(wanted('i'));
  });

  const keys = [
    'a',
    'a!',
    'a/',
    'a/b',
    'a/b/c',
    'a/c',
    'a0',
    'a~',
    'a~~',
    'aa',
    'b',
    'B',
    'a/b~',
    ' ',
    '~',
    "q'",
    "q'; --",
    'q\\',
    'q$1',
    'q"',
  ];
  const inOrder = [...keys].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  const filled = async (): Promise<Store> => {
    const store = await open();
    await put(store, Object.fromEntries(keys.map((key) => [key, key])));
    return store;
  };

  it.each(['', 'a', 'a/', 'a/b', 'a~', '~', 'b', 'B', 'c', 'a/b/c/d', "q'", 'q\\', 'q$'])(
    'finds exactly the keys with prefix "%s", in byte order',
    async (prefix) => {
      const { entries, revision } = await (await filled()).list(prefix);
      expect(entries.map(({ key }) => key)).toEqual(inOrder.filter((key) => key.startsWith(prefix)));
      expect(revision).toBe(1);
    },
  );

  it.each(['', 'a', 'a/', 'q'])('pages through prefix "%s" without gap or repeat', async (prefix) => {
    const store = await filled();
    const found: string[] = [];
    for (;;) {
      const after = found.at(-1);
      const { entries } = await store.list(prefix, after === undefined ? { limit: 2 } : { limit: 2, after });
      if (entries.length === 0) break;
      expect(entries.length).toBeLessThanOrEqual(2);
      found.push(...entries.map(({ key }) => key));
    }
    expect(found).toEqual(inOrder.filter((key) => key.startsWith(prefix)));
  });

  it('keeps everything when the values of a list are released', async () => {
    const store = await open();
    const value = (key: string): string => key.repeat(20_000);
    const all = { a: value('a'), b: value('b'), c: value('c') };
    const texts = (found: readonly { readonly value: Uint8Array | null }[]): string[] =>
      found.map(({ value }) => Buffer.from(value ?? []).toString());
    await put(store, all);
    const [first, second] = [await store.list(''), await store.list('')];
    first.release?.();
    expect(texts(second.entries)).toEqual(Object.values(all));
    const events = await collect(store, { prefix: '', after: 0, through: 1 });
    second.release?.();
    second.release?.();
    expect(texts(events)).toEqual(Object.values(all));
    expect(texts((await store.list('')).entries)).toEqual(Object.values(all));
  });

  it('starts after a key that does not exist, lies before the prefix, or lies behind it', async () => {
    const store = await filled();
    const keysAfter = async (prefix: string, after: string): Promise<string[]> =>
      (await store.list(prefix, { after })).entries.map(({ key }) => key);
    expect(await keysAfter('a/', 'a/b0')).toEqual(['a/b~', 'a/c']);
    expect(await keysAfter('a/', 'A')).toEqual(['a/', 'a/b', 'a/b/c', 'a/b~', 'a/c']);
    expect(await keysAfter('a/', 'b')).toEqual([]);
  });
}

function watchCases(open: () => Promise<Store>): void {
  it('replays the past, then follows the present', async () => {
    const store = await open();
    await put(store, { a: '1' });
    await remove(store, 'a');
    const events = collect(store, { prefix: '', after: 0, through: 3 });
    await put(store, { b: '2' });
    expect(await events).toEqual([
      { key: 'a', value: bytes('1'), revision: 1 },
      { key: 'a', value: null, revision: 2 },
      { key: 'b', value: bytes('2'), revision: 3 },
    ]);
  });

  it('begins after the given revision and keeps to its prefix', async () => {
    const store = await open();
    await put(store, { 'a/1': 'x', 'b/1': 'x' });
    await put(store, { 'a/2': 'x', 'b/2': 'x', a0: 'x' });
    await put(store, { 'b/3': 'x' });
    await put(store, { 'a/4': 'x' });
    const events = await collect(store, { prefix: 'a/', after: 1, through: 4 });
    expect(events.map(({ key, revision }) => [key, revision])).toEqual([
      ['a/2', 2],
      ['a/4', 4],
    ]);
  });

  it('never parts a revision, however large, and gives events in the order of revisions', async () => {
    const store = await open();
    const many = Object.fromEntries(Array.from({ length: 3000 }, (_, i) => [`k${i}`, 'x']));
    await put(store, many);
    await put(store, many);
    const seen: Revision[] = [];
    await follow(store, { prefix: '', after: 0 }, (batch) => {
      for (const revision of new Set(batch.map((event) => event.revision))) {
        expect(batch.filter((event) => event.revision === revision)).toHaveLength(3000);
        seen.push(revision);
      }
      return seen.length === 2;
    });
    expect(seen).toEqual([1, 2]);
  });

  it('hears of no delete of an absent key, and of no failed commit', async () => {
    const store = await open();
    await remove(store, 'absent');
    await store.commit([{ key: 'a', ifRevision: 9 }], [{ key: 'a', value: bytes('x') }]);
    await put(store, { end: 'x' });
    expect(await collect(store, { prefix: '', after: 0, through: 1 })).toEqual([
      { key: 'end', value: bytes('x'), revision: 1 },
    ]);
  });

  it('serves many watchers, each at its own pace', async () => {
    const store = await open();
    const watchers = Array.from({ length: 20 }, (_, i) => collect(store, { prefix: '', after: 0, through: i + 1 }));
    for (let i = 0; i < 20; i++) await put(store, { [`k${i}`]: 'x' });
    for (const [i, events] of (await Promise.all(watchers)).entries())
      expect(events.map(({ revision }) => revision)).toEqual(Array.from({ length: i + 1 }, (_, r) => r + 1));
  });

  it('ends when its signal aborts: asleep, between batches, or before it began', async () => {
    const store = await open();
    const asleep = new AbortController();
    const events = follow(store, { prefix: '', after: 0, signal: asleep.signal }, () => false);
    await put(store, { a: 'x' });
    asleep.abort();
    await events;

    const between = new AbortController();
    let batches = 0;
    await follow(store, { prefix: '', after: 0, signal: between.signal }, () => {
      batches++;
      between.abort();
      return false;
    });
    expect(batches).toBe(1);
    await follow(store, { prefix: '', after: 0, signal: AbortSignal.abort() }, () => {
      throw new Error('an aborted watch gives no batch');
    });
  });

  it('ends as Closed when the store closes under it', async () => {
    const store = await open();
    const events = collect(store, { prefix: '', after: 0, through: 1 });
    events.catch(() => undefined); // looked at below: it may end before all of the store has
    await store.get('a');
    await store.close();
    await expectStoreError('Closed', events);
  });

  it('refuses a revision in the future', async () => {
    const store = await open();
    await put(store, { a: 'x' });
    await expectStoreError('Invalid', collect(store, { prefix: '', after: 2, through: 3 }));
  });
}

function compactCases(open: () => Promise<Store>): void {
  const withHistory = async (revisions: number): Promise<Store> => {
    const store = await open();
    for (let i = 1; i <= revisions; i++) await put(store, { a: `${i}` });
    return store;
  };

  it.each([
    { before: 3, after: 1, compacted: true },
    { before: 3, after: 2, compacted: false },
    { before: 3, after: 5, compacted: false },
    { before: 6, after: 4, compacted: true },
    { before: 6, after: 5, compacted: false },
    { before: 0, after: 0, compacted: false },
    { before: 1, after: 0, compacted: false },
    { before: 2, after: 0, compacted: true },
  ])('of 5 revisions before $before: a watch after $after is Compacted: $compacted', async (row) => {
    const store = await withHistory(5);
    await store.compact(row.before);
    const events = collect(store, { prefix: '', after: row.after, through: 6 });
    events.catch(() => undefined); // looked at below
    await put(store, { a: '6' });
    if (row.compacted) {
      await expect(events).rejects.toThrow(Compacted);
      await expect(events).rejects.toMatchObject({ before: row.before });
    } else {
      const wanted = Array.from({ length: 6 - row.after }, (_, i) => row.after + 1 + i);
      expect((await events).map(({ revision }) => revision)).toEqual(wanted);
    }
  });

  it('keeps current entries', async () => {
    const store = await withHistory(5);
    await store.compact(6);
    expect(await store.list('')).toEqual({ entries: [{ key: 'a', value: bytes('5'), revision: 5 }], revision: 5 });
    expect(await put(store, { b: 'x' })).toBe(6);
  });

  it('does nothing the second time, or for less than before', async () => {
    const store = await withHistory(5);
    await store.compact(4);
    await store.compact(4);
    await store.compact(2);
    expect(await collect(store, { prefix: '', after: 3, through: 5 })).toHaveLength(2);
  });

  it('tells a live watcher that it was too slow', async () => {
    const store = await withHistory(2);
    const watcher = store.watch('', 1, new AbortController().signal)[Symbol.asyncIterator]();
    expect((await watcher.next()).value).toMatchObject([{ revision: 2 }]);
    await put(store, { a: '3' });
    await put(store, { a: '4' });
    await store.compact(5);
    await expect(watcher.next()).rejects.toThrow(Compacted);
  });

  it('does not overtake a watcher whose prefix is quiet', async () => {
    const store = await withHistory(1);
    const quiet = collect(store, { prefix: 'quiet', after: 1, through: 4 });
    await put(store, { a: '2' });
    await put(store, { a: '3' });
    await store.compact(4);
    await put(store, { quiet: 'x' });
    expect(await quiet).toMatchObject([{ key: 'quiet', revision: 4 }]);
  });

  it('forgets a long history', async () => {
    const store = await open();
    await Promise.all(Array.from({ length: 5000 }, (_, i) => put(store, { [`k${i % 10}`]: `${i}` })));
    await store.compact(5000);
    await expect(collect(store, { prefix: '', after: 4998, through: 5000 })).rejects.toThrow(Compacted);
    expect(await collect(store, { prefix: '', after: 4999, through: 5000 })).toHaveLength(1);
  });

  it('refuses to forget the future', async () => {
    const store = await withHistory(2);
    await expectStoreError('Invalid', store.compact(4));
  });
}

function refusalCases(open: () => Promise<Store>): void {
  const badKeys: readonly (readonly [string, string])[] = [
    ['an empty key', ''],
    ['a key of 513 bytes', 'k'.repeat(513)],
    ['a control character', 'a\nb'],
    ['a zero byte', 'a\0b'],
    ['a delete character', 'a\x7f'],
    ['a letter beyond ASCII', 'größe'],
  ];

  it.each(badKeys)('%s', async (_, key) => {
    const store = await open();
    await expectStoreError('Invalid', store.get(key));
    await expectStoreError('Invalid', store.commit([], [{ key, value: bytes('x') }]));
    await expectStoreError('Invalid', store.commit([], [{ key, value: null }]));
    await expectStoreError('Invalid', store.commit([{ key, ifRevision: 0 }], []));
    expect((await store.list('')).revision).toBe(0);
  });

  it('a key that occurs twice in one commit', async () => {
    const store = await open();
    const twice = [
      { key: 'a', value: bytes('x') },
      { key: 'a', value: null },
    ];
    await expectStoreError('Invalid', store.commit([], twice));
    expect(await store.get('a')).toBeNull();
  });

  it.each([-1, 0.5, Number.NaN, 2 ** 53])('revision %d', async (revision) => {
    const store = await open();
    await expectStoreError('Invalid', store.commit([{ key: 'a', ifRevision: revision }], []));
    await expectStoreError('Invalid', collect(store, { prefix: '', after: revision, through: 1 }));
    await expectStoreError('Invalid', store.compact(revision));
  });

  it.each([0, -1, 1.5, Number.NaN])('a list of at most %d', async (limit) => {
    await expectStoreError('Invalid', (await open()).list('', { limit }));
  });

  it('a prefix or a place beyond ASCII', async () => {
    const store = await open();
    await expectStoreError('Invalid', store.list('ä'));
    await expectStoreError('Invalid', store.list('', { after: 'ä' }));
    await expectStoreError('Invalid', collect(store, { prefix: 'ä', after: 0, through: 1 }));
  });

  it('nothing that is just allowed: the longest key, every printable character', async () => {
    const store = await open();
    const printable = Array.from({ length: 95 }, (_, i) => String.fromCharCode(32 + i)).join('');
    for (const key of ['k'.repeat(512), printable, ' ', '/']) {
      await put(store, { [key]: 'x' });
      expect(await store.get(key)).toMatchObject({ key });
    }
  });
}

function durabilityCases(open: () => Promise<StoreUnderTest>): void {
  it('has every entry, revision and event', async () => {
    const { store, reopen } = await open();
    await put(store, { a: '1', b: '1' });
    await put(store, { a: '2' });
    await remove(store, 'b');
    const again = await expectDefined(reopen)();
    expect(await again.list('')).toEqual({ entries: [{ key: 'a', value: bytes('2'), revision: 2 }], revision: 3 });
    expect((await collect(again, { prefix: '', after: 0, through: 3 })).map(({ key }) => key)).toEqual([
      'a',
      'b',
      'a',
      'b',
    ]);
    expect(await put(again, { c: 'x' })).toBe(4);
  });

  it('has what was asked for just before close', async () => {
    const { store, reopen } = await open();
    const asked = Promise.all(Array.from({ length: 50 }, (_, i) => put(store, { [`k${i}`]: 'x' })));
    const again = await expectDefined(reopen)();
    await asked;
    expect(await again.list('')).toMatchObject({ revision: 50, entries: { length: 50 } });
  });

  it('still knows what was compacted', async () => {
    const { store, reopen } = await open();
    for (let i = 0; i < 3; i++) await put(store, { a: `${i}` });
    await store.compact(4);
    const again = await expectDefined(reopen)();
    await expect(collect(again, { prefix: '', after: 2, through: 3 })).rejects.toThrow(Compacted);
    expect(await put(again, { a: 'x' })).toBe(4);
    expect(await collect(again, { prefix: '', after: 3, through: 4 })).toHaveLength(1);
  });
}

function sharedCases(open: () => Promise<StoreUnderTest>): void {
  const openTwo = async (): Promise<{ one: Store; other: Store }> => {
    const { store, another } = await open();
    return { one: store, other: await expectDefined(another)() };
  };

  it('shows at once in one what was committed in the other', async () => {
    const { one, other } = await openTwo();
    for (let i = 1; i <= 20; i++) {
      expect(await put(i % 2 === 0 ? one : other, { [`k${i}`]: `${i}` })).toBe(i);
      const reader = i % 2 === 0 ? other : one;
      expect(await reader.get(`k${i}`)).toMatchObject({ revision: i });
      expect((await reader.list('')).revision).toBe(i);
    }
  });

  it('gives commits of both one line of revisions, and every watcher all of them', async () => {
    const { one, other } = await openTwo();
    const watchers = [one, other].map((store) => collect(store, { prefix: '', after: 0, through: 400 }));
    const revisions = await Promise.all(
      Array.from({ length: 400 }, (_, i) => put(i % 2 === 0 ? one : other, { [`k${i % 7}`]: `${i}` })),
    );
    const inOrder = Array.from({ length: 400 }, (_, i) => i + 1);
    expect(revisions.sort((a, b) => a - b)).toEqual(inOrder);
    const [first, second] = await Promise.all(watchers);
    expect(first?.map(({ revision }) => revision)).toEqual(inOrder);
    expect(second).toEqual(first);
  });

  it('lets exactly one of many win a key, whoever asks', async () => {
    const { one, other } = await openTwo();
    for (let round = 0; round < 10; round++) {
      const key = `lease ${round}`;
      const results = await Promise.all(
        Array.from({ length: 20 }, (_, i) =>
          (i % 2 === 0 ? one : other).commit([{ key, ifRevision: 0 }], [{ key, value: bytes(`holder ${i}`) }]),
        ),
      );
      expect(results.filter((result) => result.ok)).toHaveLength(1);
    }
  });

  it('checks conditions on what the other has written, deleted and left alone', async () => {
    const { one, other } = await openTwo();
    await put(one, { a: '1', b: '1', c: '1' }); // revision 1
    await put(other, { a: '2' }); // 2
    await remove(other, 'b'); // 3
    const writes = [{ key: 'written', value: bytes('x') }];
    expect(await one.commit([{ key: 'a', ifRevision: 1 }], writes)).toEqual({ ok: false, key: 'a' });
    expect(await one.commit([{ key: 'b', ifRevision: 1 }], writes)).toEqual({ ok: false, key: 'b' });
    expect(await other.commit([{ key: 'c', ifRevision: 0 }], writes)).toEqual({ ok: false, key: 'c' });
    // Also where nothing is to be written.
    expect(await one.commit([{ key: 'a', ifRevision: 1 }], [])).toEqual({ ok: false, key: 'a' });
    expect(await one.commit([{ key: 'a', ifRevision: 2 }], [])).toEqual({ ok: true, revision: 3 });
    const held = [
      { key: 'a', ifRevision: 2 },
      { key: 'b', ifRevision: 0 },
      { key: 'c', ifRevision: 1 },
    ];
    expect(await one.commit(held, writes)).toEqual({ ok: true, revision: 4 });
    const later = held.concat({ key: 'written', ifRevision: 4 });
    expect(await other.commit(later, writes)).toEqual({ ok: true, revision: 5 });
  });

  it('loses no count when many add to it', async () => {
    const { one, other } = await openTwo();
    const add = async (store: Store): Promise<void> => {
      for (;;) {
        const entry = await store.get('count');
        const value = bytes(String(Number(new TextDecoder().decode(entry?.value ?? bytes('0'))) + 1));
        const result = await store.commit(
          [{ key: 'count', ifRevision: entry?.revision ?? 0 }],
          [{ key: 'count', value }],
        );
        if (result.ok) return;
      }
    };
    await Promise.all(
      [one, other, one, other].map(async (store) => {
        for (let i = 0; i < 10; i++) await add(store);
      }),
    );
    expect((await one.get('count'))?.value).toEqual(bytes('40'));
    expect((await one.list('')).revision).toBe(40);
  });

  it('resumes a watch of one in the other, from the revision just answered', async () => {
    const { one, other } = await openTwo();
    for (let i = 0; i < 30; i++) {
      const revision = await put(one, { a: `${i}` });
      const events = collect(other, { prefix: '', after: revision, through: revision + 1 });
      await put(one, { b: `${i}` });
      expect(await events).toMatchObject([{ key: 'b', revision: revision + 1 }]);
    }
  });

  it('wakes a sleeping watcher of one by a commit in the other', async () => {
    const { one, other } = await openTwo();
    const watcher = one.watch('a', 0, new AbortController().signal)[Symbol.asyncIterator]();
    for (let i = 1; i <= 10; i++) {
      const next = watcher.next();
      await put(other, { a: `${i}` });
      expect((await next).value).toMatchObject([{ key: 'a', value: bytes(`${i}`), revision: i }]);
    }
    await watcher.return?.();
  });

  it('tells in one what the other has forgotten, and serves what is left', async () => {
    const { one, other } = await openTwo();
    for (let i = 1; i <= 5; i++) await put(one, { a: `${i}` });
    await other.compact(4);
    await expect(collect(other, { prefix: '', after: 1, through: 5 })).rejects.toThrow(Compacted);
    expect(await collect(other, { prefix: '', after: 3, through: 5 })).toHaveLength(2);
    expect(await put(one, { a: '6' })).toBe(6);
    expect(await one.get('a')).toMatchObject({ value: bytes('6'), revision: 6 });
  });

  it('commits what is large in one while the other commits what is small', async () => {
    const { one, other } = await openTwo();
    const large = Object.fromEntries(Array.from({ length: 2_000 }, (_, i) => [`large/${i}`, 'x'.repeat(2_000)]));
    const small = Array.from({ length: 50 }, (_, i) => put(other, { [`small/${i}`]: 'x' }));
    const revision = await put(one, large);
    await Promise.all(small);
    const { entries } = await other.list('large/');
    expect(entries).toHaveLength(2_000);
    expect(new Set(entries.map((entry) => entry.revision))).toEqual(new Set([revision]));
    expect((await other.list('')).revision).toBe(51);
  });

  it('shows the commits of many writers in both, each once, in the order of their answers', async () => {
    const { one, other } = await openTwo();
    let turn = 0;
    const either = (): Store => (turn++ % 2 === 0 ? one : other);
    const history = await Promise.all(
      Array.from({ length: 8 }, async (_, writer) => {
        const done: { revision: Revision; key: string; value: string }[] = [];
        for (let i = 0; i < 15; i++) {
          const [key, value] = [`k${(writer * 3 + i) % 5}`, `${writer}.${i}`];
          done.push({ revision: await put(either(), { [key]: value }), key, value });
        }
        return done;
      }),
    );
    const expected = history.flat().sort((a, b) => a.revision - b.revision);
    for (const store of [one, other]) {
      const events = await collect(store, { prefix: '', after: 0, through: 120 });
      expect(events).toEqual(expected.map(({ key, value, revision }) => ({ key, value: bytes(value), revision })));
    }
  });
}

/** Writes and answers the revision. */
async function put(store: Store, values: Readonly<Record<string, string>>): Promise<Revision> {
  const writes = Object.entries(values).map(([key, value]) => ({ key, value: bytes(value) }));
  const result = await store.commit([], writes);
  if (!result.ok) throw new Error('a commit without conditions cannot fail on one');
  return result.revision;
}

async function remove(store: Store, key: string): Promise<Revision> {
  const result = await store.commit([], [{ key, value: null }]);
  if (!result.ok) throw new Error('a commit without conditions cannot fail on one');
  return result.revision;
}

function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

/** All events under `prefix` above `after` to revision `through`; one of that revision or a later one must come. */
async function collect(
  store: Store,
  watch: { readonly prefix: string; readonly after: Revision; readonly through: Revision },
): Promise<WatchEvent[]> {
  const events: WatchEvent[] = [];
  await follow(store, watch, (batch) => {
    events.push(...batch);
    return (events.at(-1)?.revision ?? 0) >= watch.through;
  });
  return events.filter(({ revision }) => revision <= watch.through);
}

/** Hands each batch to `take` until it answers true or the watch ends. */
async function follow(
  store: Store,
  watch: { readonly prefix: string; readonly after: Revision; readonly signal?: AbortSignal },
  take: (batch: readonly WatchEvent[]) => boolean,
): Promise<void> {
  const done = new AbortController();
  for await (const batch of store.watch(watch.prefix, watch.after, watch.signal ?? done.signal)) {
    if (take(batch)) break;
  }
  done.abort();
}

async function expectStoreError(code: StoreErrorCode, promise: Promise<unknown>): Promise<void> {
  await expect(promise).rejects.toMatchObject({ name: 'StoreError', code, outcome: 'none' });
}

function expectDefined<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('a durable factory gives reopen');
  return value;
}
