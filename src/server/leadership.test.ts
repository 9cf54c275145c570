import { expect, it } from 'vitest';
import { ApiError } from '../api/errors.ts';
import { silentLogger } from '../base/log.ts';
import { createManualClock } from '../base/manual-clock.ts';
import { seededPrng } from '../base/prng.ts';
import { system } from '../base/system.ts';
import { defaultPolicy } from '../core/state/context.ts';
import { endLeadership } from '../core/operations/servers/leadership.ts';
import { encodeRecord } from '../core/state/codec.ts';
import { keys } from '../core/state/keys.ts';
import type { AnyRecord } from '../core/state/records.ts';
import { recordsVersion } from '../core/state/upgrade.ts';
import { createMemoryStore } from '../store/memory/memory-store.ts';
import { type Store, StoreError } from '../store/store.ts';
import { closeForMove } from './storage/refill.ts';
import { MemoryRunStorage } from './runs/memory-run-storage.ts';
import { defaultRunLimits, RunFiles } from './runs/run-files.ts';
import { startControlPlane } from './server.ts';
import { readyz } from './testing.ts';

const leaseMs = 6_000;

/** Several control planes on one store and one clock. */
function rig() {
  const clock = createManualClock();
  const memory = createMemoryStore();
  let started = 0;
  const start = async (name: string, store: Store = memory, more: { readonly marksLater?: boolean } = {}) => {
    started += 1;
    return startControlPlane({
      store,
      clock,
      idleMs: () => clock.monotonicMs(),
      prng: seededPrng(started, name),
      log: silentLogger,
      policy: defaultPolicy,
      links: { get: () => Promise.reject(new Error('no line')), open: () => Promise.reject(new Error('no line')) },
      runFiles: new RunFiles({ storage: new MemoryRunStorage(), limits: defaultRunLimits, clock }),
      version: 'test',
      name,
      leaseMs,
      ...more,
      secrets: { tokenSecret: 'x'.repeat(43), operatorToken: 'operator' },
    });
  };
  /** In steps, each until nothing is left to do. */
  const pass = async (ms: number): Promise<void> => {
    for (let left = ms; left > 0; left -= 250) {
      clock.advance(250);
      for (let turn = 0; turn < 5; turn++) await system.turn();
    }
  };
  return { memory, start, pass };
}

/** A store that one control plane loses: it neither answers nor tells anything any more. */
function losable(store: Store) {
  let lost = false;
  const unlessLost = <R>(result: Promise<R>): Promise<R> =>
    lost ? Promise.reject(new StoreError('Unavailable', 'lost')) : result;
  const wrapped: Store = {
    get: (key) => unlessLost(store.get(key)),
    list: (prefix, options) => unlessLost(store.list(prefix, options)),
    commit: (conditions, writes) =>
      lost ? unlessLost(Promise.resolve({ ok: true, revision: 0 })) : store.commit(conditions, writes),
    async *watch(prefix, after, signal) {
      if (lost) throw new StoreError('Unavailable', 'lost');
      for await (const batch of store.watch(prefix, after, signal)) {
        if (lost) throw new StoreError('Unavailable', 'lost');
        yield batch;
      }
    },
    compact: (before) => unlessLost(store.compact(before)),
    close: () => Promise.resolve(),
  };
  return { store: wrapped, lose: (now: boolean) => void (lost = now) };
}

/** A store behind a cable that is pulled out: nothing is refused, and nothing comes, until it is put in again. */
function cuttable(store: Store) {
  let joined = Promise.withResolvers<void>();
  joined.resolve();
  const wrapped: Store = {
    get: (key) => joined.promise.then(() => store.get(key)),
    list: (prefix, options) => joined.promise.then(() => store.list(prefix, options)),
    commit: (conditions, writes) => joined.promise.then(() => store.commit(conditions, writes)),
    async *watch(prefix, after, signal) {
      for await (const batch of store.watch(prefix, after, signal)) {
        await joined.promise;
        yield batch;
      }
    },
    compact: (before) => store.compact(before),
    close: () => Promise.resolve(),
  };
  const cut = (): void => {
    joined = Promise.withResolvers();
  };
  return { store: wrapped, cut, mend: () => joined.resolve() };
}

it('is ready no longer when its store has been silent for longer than nobody ever leads', async () => {
  const { start, pass, memory } = rig();
  const { store, cut } = cuttable(memory);
  const first = await start('one');
  await pass(250);
  const second = await start('two', store);
  await pass(2 * leaseMs);
  expect([first.ready(), second.ready()]).toEqual([true, true]);
  cut();
  await pass(2 * leaseMs);
  expect([first.ready(), second.ready()]).toEqual([true, false]);
  await first.stop(); // the second waits for ever: so it is with a cable
});

it('is ready no longer when it leads and its lease could not be renewed', async () => {
  const { start, pass, memory } = rig();
  const { store, cut, mend } = cuttable(memory);
  const only = await start('one', store);
  await pass(leaseMs);
  expect([only.leads(), only.ready()]).toEqual([true, true]);
  cut();
  await pass(leaseMs);
  expect([only.leads(), only.ready()]).toEqual([false, false]);
  mend();
  await pass(leaseMs);
  expect([only.leads(), only.ready()]).toEqual([true, true]);
  await only.stop();
});

it.each([
  ['Full', 'the store has no space left'],
  ['Unavailable', 'the store cannot be written now'],
] as const)(
  'is ready no longer when it is alone and its store answers %s, until that takes writes again',
  async (code, why) => {
    const { start, pass, memory } = rig();
    let fails = false;
    const { store } = cuttable(memory);
    const only = await start('one', {
      ...store,
      exclusive: true,
      commit: (...of) => (fails ? Promise.reject(new StoreError(code, 'no')) : store.commit(...of)),
    });
    await pass(leaseMs);
    expect(await readyz(only)).toMatchObject({ status: 200 });
    fails = true;
    await pass(leaseMs);
    expect(await readyz(only)).toMatchObject({ status: 200 }); // nothing has been written
    const { cache, committer } = only.decider;
    const written = committer.submit(endLeadership(cache, { term: 1 }).plan);
    await expect(written).rejects.toThrow(ApiError);
    await expect(readyz(only)).rejects.toThrow(why);
    await pass(2 * leaseMs);
    await expect(readyz(only)).rejects.toThrow(why);
    expect(only.leads()).toBe(true);
    fails = false;
    await pass(leaseMs);
    expect(await readyz(only)).toMatchObject({ status: 200 });
    await only.stop();
  },
);

it('says why the store is closed for as long as it is', async () => {
  const { start, pass, memory } = rig();
  const only = await start('one');
  await pass(leaseMs);
  const closed = await closeForMove(memory, 0);
  await pass(3 * leaseMs);
  await expect(readyz(only)).rejects.toThrow('a move to another store is in progress');
  await closed.reopen();
  await pass(leaseMs);
  expect(only.ready()).toBe(true);
  await only.stop();
});

it('lets the first lead at once, and nobody else while it renews its lease', async () => {
  const { start, pass, memory } = rig();
  const first = await start('one');
  await pass(250);
  const second = await start('two');
  await pass(10 * leaseMs);
  expect([first.leads(), second.leads()]).toEqual([true, false]);
  const leader = first.decider.cache.committed('leader', keys.leader);
  expect(leader?.value).toMatchObject({ holder: 'one', term: 1 });
  await Promise.all([first.stop(), second.stop()]);
  await memory.close();
});

it('passes on at once what a leader lets go', async () => {
  const { start, pass } = rig();
  const first = await start('one');
  await pass(250);
  const second = await start('two');
  await pass(250);
  await first.stop();
  await pass(250);
  expect(second.leads()).toBe(true);
  expect(second.decider.cache.committed('leader', keys.leader)?.value).toMatchObject({ holder: 'two', term: 2 });
  await second.stop();
});

it('takes over from a leader that is silent, which has stepped down by then', async () => {
  const { start, pass, memory } = rig();
  const { store, lose } = losable(memory);
  const first = await start('one', store);
  await pass(250);
  const second = await start('two');
  await pass(leaseMs);
  lose(true);
  const seen = new Set<string>();
  for (let passed = 0; passed < 1.5 * leaseMs; passed += 250) {
    await pass(250);
    seen.add(`${first.leads()} ${second.leads()}`);
  }
  expect([...seen]).toEqual(['true false', 'false false', 'false true']); // never both
  lose(false);
  await pass(3 * leaseMs);
  expect([first.leads(), second.leads()]).toEqual([false, true]);
  expect(first.ready()).toBe(true);
  await Promise.all([first.stop(), second.stop()]);
});

it('refuses what a leader decides that does not know yet that another leads', async () => {
  const { start, pass, memory } = rig();
  const first = await start('one');
  await pass(250);
  const entry = first.decider.cache.committed('leader', keys.leader) ?? expect.unreachable();
  const fence = { key: keys.leader, ifRevision: entry.revision };
  const taken = { ...entry.value, holder: 'two', term: 2 };
  const written = await memory.commit([fence], [{ key: keys.leader, value: Buffer.from(JSON.stringify(taken)) }]);
  expect(written.ok).toBe(true);
  // Decided in the same turn, before the news can come.
  const gate = { kind: 'gate', name: 'x', generation: 1 } as const;
  const late = first.decider.committer.submit({
    changes: [{ key: keys.gate('x'), ifRevision: 0, value: gate }],
    conditions: [fence],
  });
  expect(await late).toEqual({ ok: false, key: keys.leader });
  await pass(250);
  expect(first.leads()).toBe(false);
  await first.stop();
});

it('does not wait for its own former life', async () => {
  const { start, pass, memory } = rig();
  const first = await start('one');
  await pass(250);
  expect(first.leads()).toBe(true);
  const again = await start('one', memory); // the first was killed
  await pass(250);
  expect(again.leads()).toBe(true);
  await Promise.all([first.stop(), again.stop()]);
});

it('gives hosts their full time again when another takes over: while nobody led nobody may have been heard', async () => {
  const { start, pass, memory } = rig();
  const { store, lose } = losable(memory);
  const first = await start('one', store);
  await pass(250);
  const second = await start('two');
  const lease = { kind: 'lease', host: 'h1', epoch: 1, renewedAtMs: 0 };
  await memory.commit([], [{ key: keys.lease('h1'), value: Buffer.from(JSON.stringify(lease)) }]);
  await pass(250);
  const { cache } = second.decider;
  const seenAtMs = cache.leaseSeenAtMs('h1') ?? expect.unreachable();
  lose(true);
  await pass(2 * leaseMs);
  expect(second.leads()).toBe(true);
  expect(cache.leaseSeenAtMs('h1')).toBeGreaterThanOrEqual(seenAtMs + leaseMs);
  await Promise.all([first.stop(), second.stop()]);
});

it('marks a store of an earlier form when it is told to, and leads at once then', async () => {
  const { memory, start, pass } = rig();
  const before: AnyRecord[] = [
    { kind: 'cluster', recordsVersion: recordsVersion - 1, epoch: 'e', createdAtMs: 1, tokenSecret: 'x'.repeat(43) },
    { kind: 'leader', holder: 'of the version before', term: 4 },
  ];
  const [cluster, leader] = before.map(encodeRecord);
  await memory.commit(
    [],
    [
      { key: keys.cluster, value: cluster ?? null },
      { key: keys.leader, value: leader ?? null },
    ],
  );
  const server = await start('new', memory, { marksLater: true });
  await pass(250);
  expect([server.opened, server.ready(), server.leads()]).toEqual([false, false, false]);
  expect((await memory.list('')).revision).toBe(1); // until then all is as the servers of the version before know it
  await server.open();
  await pass(250);
  expect([server.opened, server.ready(), server.leads()]).toEqual([true, true, true]);
  await server.stop();
});
