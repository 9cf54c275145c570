import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { silentLogger } from '../base/log.ts';
import { Cache } from '../core/state/cache.ts';
import { decodeRecord, encodeRecord } from '../core/state/codec.ts';
import { keys } from '../core/state/keys.ts';
import { type Plan, unchanged } from '../core/state/plan.ts';
import type { Allocation, AnyRecord } from '../core/state/records.ts';
import { testInstance } from '../core/testing.ts';
import { createMemoryStore } from '../store/memory/memory-store.ts';
import { type CommitResult, type Store, StoreError } from '../store/store.ts';
import { Committer } from './commit.ts';

const keyOf = (name: string) => `instances/default/${name}`;
const create = (name: string): Plan => ({ changes: [{ key: keyOf(name), ifRevision: 0, value: testInstance(name) }] });

/** A store whose commits wait until they are let through, and are counted. */
function gated(store: Store) {
  const commits: number[] = [];
  let open = (): void => {};
  let gate = new Promise<void>((resolve) => (open = resolve));
  const wrapped: Store = {
    ...store,
    async commit(conditions, writes): Promise<CommitResult> {
      commits.push(writes.length);
      await gate;
      return store.commit(conditions, writes);
    },
  };
  return {
    store: wrapped,
    commits,
    open: () => open(),
    shut: () => {
      gate = new Promise<void>((resolve) => (open = resolve));
    },
  };
}

function parts(store: Store) {
  const cache = new Cache(() => 0);
  return { cache, committer: new Committer({ store, cache, log: silentLogger }) };
}

describe('the committer', () => {
  it('writes what was submitted while it was busy as one commit', async () => {
    const gate = gated(createMemoryStore());
    const { committer } = parts(gate.store);
    const first = committer.submit(create('a'));
    await Promise.resolve().then(() => {});
    const others = ['b', 'c', 'd'].map((name) => committer.submit(create(name)));
    gate.open();
    expect(await first).toEqual({ ok: true, revision: 1 });
    expect(await Promise.all(others)).toEqual(Array.from({ length: 3 }, () => ({ ok: true, revision: 2 })));
    expect(gate.commits).toEqual([1, 3]);
  });

  it('tells the fates of what is under way, and waits for nothing that comes later', async () => {
    const memory = createMemoryStore();
    const under: (() => void)[] = [];
    const asked = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const store: Store = {
      ...memory,
      async commit(...of): Promise<CommitResult> {
        await new Promise<void>((resolve) => {
          asked[under.push(resolve) - 1]?.resolve();
        });
        return memory.commit(...of);
      },
    };
    const { committer, cache } = parts(store);
    expect(await committer.fates()).toBe(false);
    const first = committer.submit(create('a'));
    await asked[0]?.promise;
    const fates = committer.fates();
    const second = committer.submit(create('b'));
    under[0]?.();
    expect(await fates).toBe(true);
    expect(cache.committed('instance', keyOf('a'))).toBeDefined();
    expect(cache.committed('instance', keyOf('b'))).toBeUndefined();
    await asked[1]?.promise;
    under[1]?.();
    expect([await first, await second]).toMatchObject([{ revision: 1 }, { revision: 2 }]);
  });

  it('does not take for so what another control plane has changed, when nothing is to be changed', async () => {
    const store = createMemoryStore();
    const [here, there] = [parts(store), parts(store)];
    await here.committer.submit(create('a'));
    const read = await store.list('');
    there.cache.reset(
      read.entries.map(({ key, value, revision }) => ({ key, value: decodeRecord(key, value), revision })),
      read.revision,
    );
    const entry = here.cache.get('instance', keyOf('a')) ?? expect.unreachable();
    const changed = { ...entry.value, spec: { ...entry.value.spec, powerState: 'stopped' as const } };
    await here.committer.submit({ changes: [{ key: entry.key, ifRevision: entry.revision, value: changed }] });
    const asBefore = () =>
      there.committer.submit(unchanged(there.cache.get('instance', keyOf('a')) ?? expect.unreachable()));
    expect(await asBefore()).toEqual({ ok: false, key: keyOf('a') });
    there.cache.apply([{ key: entry.key, value: changed, revision: 2 }], 2);
    expect(await asBefore()).toEqual({ ok: true, revision: 2 });
  });

  it('asks who comes with more than the disk takes at once to wait, in the order of coming', async () => {
    const gate = gated(createMemoryStore());
    const { committer } = parts(gate.store);
    await committer.room();
    const first = committer.submit(create('first'));
    await Promise.resolve().then(() => {});
    const many = Array.from({ length: 1_000 }, (_, i) => committer.submit(create(`n${i}`)));
    const came: string[] = [];
    const waiting = ['a', 'b'].map((name) => committer.room().then(() => came.push(name)));
    await new Promise((resolve) => setImmediate(resolve));
    expect(came).toEqual([]);
    gate.open();
    await Promise.all([first, ...many, ...waiting]);
    expect(came).toEqual(['a', 'b']);
  });

  it('lets those in who wait for room when the store fails, and while others who need not wait go on and on', async () => {
    const memory = createMemoryStore();
    let away = true;
    const store: Store = {
      ...memory,
      async commit(conditions, writes) {
        await new Promise((resolve) => setImmediate(resolve));
        if (away) throw new StoreError('Unavailable', 'away');
        return memory.commit(conditions, writes);
      },
    };
    const { committer } = parts(store);
    const lost = Array.from({ length: 1_200 }, (_, i) => committer.submit(create(`n${i}`)));
    const outcomes = Promise.allSettled(lost);
    await committer.room();
    await outcomes;
    away = false;
    let stopped = false;
    let count = 0;
    const more = async (): Promise<void> => {
      while (!stopped) await committer.submit(create(`more${count++}`));
    };
    const flood = Array.from({ length: 4_500 }, more);
    await committer.room();
    stopped = true;
    await Promise.all(flood);
  });

  it('takes no revision for its own that it has not made', async () => {
    const memory = createMemoryStore();
    const { cache, committer } = parts(memory);
    const made = committer.submit(create('a'));
    const seen = cache.get('instance', keyOf('a')) ?? expect.unreachable();
    await made;
    await memory.commit([], [{ key: keyOf('theirs'), value: new Uint8Array([1]) }]);
    const again = await committer.submit({ changes: [{ key: keyOf('gone'), ifRevision: 0, value: null }] });
    expect(again).toEqual({ ok: true, revision: 2 });
    expect([1, 2].map((revision) => cache.isOwn(revision))).toEqual([true, false]);
    expect(seen.revision).toBeLessThan(0);
  });

  it('writes nothing after a restore that was decided before it', async () => {
    const memory = createMemoryStore();
    const gate = Promise.withResolvers<void>();
    const store: Store = {
      ...memory,
      async commit(conditions, writes) {
        await gate.promise;
        return memory.commit(conditions, writes);
      },
    };
    const { cache, committer } = parts(store);
    const first = committer.submit(create('first'));
    await Promise.resolve(); // it is on its way
    const second = committer.submit(create('second'));
    const cluster = {
      kind: 'cluster',
      recordsVersion: 1,
      epoch: 'e2',
      createdAtMs: 0,
      tokenSecret: '',
      operatorToken: '',
    } as const;
    await memory.commit([], [{ key: keys.cluster, value: encodeRecord(cluster) }]);
    cache.apply([{ key: keys.cluster, value: cluster, revision: 1 }], 1);
    gate.resolve();
    expect([await first, await second]).toEqual([
      { ok: false, key: keys.cluster },
      { ok: false, key: keys.cluster },
    ]);
  });

  it('asks the store once for what many Plans rest on', async () => {
    const memory = createMemoryStore();
    const asked: string[][] = [];
    const store: Store = {
      ...memory,
      commit(conditions, writes) {
        asked.push(conditions.map(({ key }) => key));
        return memory.commit(conditions, writes);
      },
    };
    const { cache, committer } = parts(store);
    await committer.submit(create('host'));
    const conditions = [{ key: keyOf('host'), ifRevision: cache.committed('instance', keyOf('host'))?.revision ?? 0 }];
    const plans = ['a', 'b'].map((name) => committer.submit({ ...create(name), conditions }));
    expect(await Promise.all(plans)).toMatchObject([{ ok: true }, { ok: true }]);
    expect(asked.at(-1)).toEqual([keyOf('a'), keyOf('host'), keyOf('b'), keys.cluster]);
    // Of two that were decided on different states of it one is wrong.
    const older = committer.submit({ ...create('e'), conditions });
    const newer = committer.submit({ ...create('f'), conditions: [{ key: keyOf('host'), ifRevision: 9 }] });
    expect([await older, await newer]).toMatchObject([{ ok: true }, { ok: false }]);
    await memory.commit([], [{ key: keyOf('host'), value: null }]);
    const late = ['c', 'd'].map((name) => committer.submit({ ...create(name), conditions }));
    expect(await Promise.all(late)).toEqual([
      { ok: false, key: keyOf('host') },
      { ok: false, key: keyOf('host') },
    ]);
  });

  it('commits a Plan that rests on an uncommitted one together with it', async () => {
    const store = createMemoryStore();
    const { cache, committer } = parts(store);
    const made = committer.submit(create('a'));
    const seen = cache.get('instance', keyOf('a'));
    const changed = committer.submit({
      changes: [{ key: keyOf('a'), ifRevision: seen?.revision ?? 0, value: testInstance('a', { cpus: 3 }) }],
    });
    expect(await made).toMatchObject({ ok: true });
    expect(await changed).toMatchObject({ ok: true });
    expect(cache.committed('instance', keyOf('a'))?.value.spec.cpus).toBe(3);
  });

  it.each<[string, (ifRevision: number) => Plan]>([
    ['changes', (ifRevision) => ({ changes: [{ key: keyOf('a'), ifRevision, value: testInstance('a') }] })],
    ['only reads', (ifRevision) => ({ ...create('web'), conditions: [{ key: keyOf('a'), ifRevision }] })],
  ])(
    'refuses a Plan that %s what is durable by then, when another control plane has written in between',
    async (_, planOn) => {
      const memory = createMemoryStore();
      const gate = gated(memory);
      const { cache, committer } = parts(gate.store);
      const first = committer.submit(create('a'));
      await Promise.resolve().then(() => {});
      const second = committer.submit(planOn(cache.get('instance', keyOf('a'))?.revision ?? 0));
      const other = first.then(() => memory.commit([], [{ key: keyOf('a'), value: new Uint8Array([1]) }]));
      gate.open();
      expect(await first).toEqual({ ok: true, revision: 1 });
      gate.shut();
      await other;
      gate.open();
      expect(await second).toEqual({ ok: false, key: keyOf('a') });
      expect((await memory.get(keyOf('a')))?.revision).toBe(2);
      expect(await memory.get(keyOf('web'))).toBeNull();
    },
  );

  it('makes "it is so already" wait until that is durable, and share the fate of what it rests on', async () => {
    const memory = createMemoryStore();
    let away = false;
    const store: Store = {
      ...memory,
      commit: (conditions, writes) =>
        away ? Promise.reject(new StoreError('Unavailable', 'away')) : memory.commit(conditions, writes),
    };
    const { cache, committer } = parts(store);
    const again = () => committer.submit(unchanged(cache.get('instance', keyOf('a')) ?? expect.unreachable()));
    away = true;
    const lost = await Promise.allSettled([committer.submit(create('a')), again()]);
    const refused = { status: 'rejected', reason: { code: 'Unavailable', details: { nothingChanged: true } } };
    expect(lost).toMatchObject([refused, refused]);
    away = false;
    const kept = await Promise.all([committer.submit(create('a')), again()]);
    expect(kept).toEqual([
      { ok: true, revision: 1 },
      { ok: true, revision: 1 },
    ]);
  });

  it('fails only the Plan whose condition does not hold, and those that rest on it', async () => {
    const store = createMemoryStore();
    await store.commit([], [{ key: keyOf('taken'), value: new Uint8Array([1]) }]); // by another control plane; not yet seen here
    const { cache, committer } = parts(store);
    const good = committer.submit(create('a'));
    const bad = committer.submit(create('taken'));
    const onBad = committer.submit({
      changes: [
        { key: keyOf('b'), ifRevision: 0, value: testInstance('b') },
        {
          key: keyOf('taken'),
          ifRevision: cache.get('instance', keyOf('taken'))?.revision ?? 0,
          value: testInstance('taken', { cpus: 9 }),
        },
      ],
    });
    expect(await good).toMatchObject({ ok: true });
    expect(await bad).toEqual({ ok: false, key: keyOf('taken') });
    expect(await onBad).toEqual({ ok: false, key: keyOf('taken') });
    expect(cache.get('instance', keyOf('b'))).toBeUndefined();
    expect(await store.get(keyOf('b'))).toBeNull();
  });

  it('holds a condition on a key that is only read', async () => {
    const store = createMemoryStore();
    await store.commit([], [{ key: 'hosts/h1', value: new Uint8Array([1]) }]);
    const { committer } = parts(store);
    expect(await committer.submit({ ...create('a'), conditions: [{ key: 'hosts/h1', ifRevision: 0 }] })).toEqual({
      ok: false,
      key: 'hosts/h1',
    });
  });

  it('forgets everything that was decided on top of a commit that the store failed', async () => {
    const memory = createMemoryStore();
    let full = true;
    const store: Store = {
      ...memory,
      commit: (conditions, writes) =>
        full ? Promise.reject(new StoreError('Full', 'no room')) : memory.commit(conditions, writes),
    };
    const { cache, committer } = parts(store);
    const both = await Promise.allSettled([committer.submit(create('a')), committer.submit(create('b'))]);
    expect(both.map((result) => result.status === 'rejected' && result.reason.code)).toEqual([
      'StoreFull',
      'StoreFull',
    ]);
    expect([...cache.list('instance')]).toEqual([]);
    full = false;
    expect(await committer.submit(create('a'))).toMatchObject({ ok: true });
  });

  it('leaves the cache as the store is, whatever Plans share a commit, are refused or lost', async () => {
    const step = fc.record({
      name: fc.constantFrom('a', 'b'),
      remove: fc.boolean(),
      with: fc.option(fc.constantFrom('a', 'b'), { nil: undefined }),
      cpus: fc.integer({ min: 1, max: 9 }),
      next: fc.constantFrom('nothing', 'turn', 'settle', 'foreign', 'hear', 'lose'),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
        const memory = createMemoryStore();
        let lost = false;
        const { cache, committer } = parts({
          ...memory,
          commit: (conditions, writes) =>
            lost ? Promise.reject(new StoreError('Full', 'no room')) : memory.commit(conditions, writes),
        });
        const told = new Map<string, AnyRecord | undefined>();
        cache.onCommitted((key) => told.set(key, cache.committed('allocation', key)?.value));
        const outcomes: Promise<unknown>[] = [];
        for (const { name, remove, with: other, cpus, next } of steps) {
          const value = remove ? null : allocation(name, cpus);
          const key = allocationKey(name);
          const ifRevision = cache.get('allocation', key)?.revision ?? 0;
          const conditions =
            other === undefined || other === name
              ? []
              : [
                  {
                    key: allocationKey(other),
                    ifRevision: cache.get('allocation', allocationKey(other))?.revision ?? 0,
                  },
                ];
          outcomes.push(committer.submit({ changes: [{ key, ifRevision, value }], conditions }));
          lost = next === 'lose';
          if (next === 'turn') await Promise.resolve();
          if (next === 'settle' || lost) await committer.settled();
          if (next === 'foreign') await memory.commit([], [{ key, value: encodeRecord(allocation(name, 10 + cpus)) }]);
          if (next === 'hear') await hear(memory, cache);
          lost = false;
        }
        await Promise.allSettled(outcomes);
        await committer.settled();
        await hear(memory, cache);
        const { entries } = await memory.list('');
        const stored = entries.map(({ key, value, revision }) => ({ key, value: decodeRecord(key, value), revision }));
        expect([...cache.listCommitted('allocation')].sort(byKey)).toEqual(stored);
        expect([...cache.list('allocation')].sort(byKey)).toEqual(stored);
        const used = stored.reduce((sum, { value }) => sum + (value.kind === 'allocation' ? cpusOf(value) : 0), 0);
        expect(cache.usedBy('p').get('VCPU') ?? 0).toBe(used);
        expect(cache.heldOnHost('h1')).toBe(stored.length);
        for (const [key, value] of told) expect(value).toEqual(cache.committed('allocation', key)?.value);
      }),
      { numRuns: 200 },
    );
  });
});

function allocation(name: string, cpus: number): Allocation {
  const consumer = { id: `inst_${name}`, incarnation: 1, project: 'default', name };
  return { kind: 'allocation', consumer, host: 'h1', amounts: { p: { VCPU: cpus } }, driver: 'fake' };
}

const allocationKey = (name: string) => `allocations/inst_${name}.1`;
const cpusOf = ({ amounts }: Allocation) => amounts['p']?.['VCPU'] ?? 0;
const byKey = (a: { key: string }, b: { key: string }) => (a.key < b.key ? -1 : 1);

/** The cache applies all events of the store since. */
async function hear(store: Store, cache: Cache): Promise<void> {
  const { revision } = await store.list('', { limit: 1 });
  if (revision === cache.revision) return;
  const { signal } = new AbortController();
  for await (const batch of store.watch('', cache.revision, signal)) {
    const upTo = batch.at(-1)?.revision ?? cache.revision;
    cache.apply(
      batch.map(({ key, value, revision: at }) => ({ key, value: value && decodeRecord(key, value), revision: at })),
      upTo,
    );
    if (upTo >= revision) return;
  }
}
