import { describe, expect, it } from 'vitest';
import { silentLogger } from '../base/log.ts';
import { seededPrng } from '../base/prng.ts';
import { systemClock } from '../base/system.ts';
import { Cache } from '../core/state/cache.ts';
import { decodeRecord, encodeRecord } from '../core/state/codec.ts';
import { defaultPolicy } from '../core/state/context.ts';
import type { Plan } from '../core/state/plan.ts';
import type { Snapshot } from '../core/state/snapshot.ts';
import { testInstance } from '../core/testing.ts';
import { createMemoryStore } from '../store/memory/memory-store.ts';
import { type Store, StoreError } from '../store/store.ts';
import { Committer } from './commit.ts';
import { decideAllAndCommit, type Decider } from './decide.ts';

const keyOf = (name: string) => `instances/default/${name}`;

function deciderOf(store: Store): Decider {
  const cache = new Cache(() => 0);
  const committer = new Committer({ store, cache, log: silentLogger });
  return { cache, committer, clock: systemClock, prng: seededPrng(1), policy: defaultPolicy };
}

/** Writes an instance over whatever is there, and says in which attempt. */
const write = (name: string, seen?: (attempt: number) => void) => (snapshot: Snapshot, _: unknown, attempt: number) => {
  seen?.(attempt);
  const ifRevision = snapshot.get('instance', keyOf(name))?.revision ?? 0;
  const plan: Plan = { changes: [{ key: keyOf(name), ifRevision, value: testInstance(name) }] };
  return { name, plan };
};

describe('many decisions at once', () => {
  it('are one durable write, each seeing those before it, and what one throws is its own', async () => {
    const store = createMemoryStore();
    const decider = deciderOf(store);
    const done = await decideAllAndCommit(decider, [
      write('a'),
      () => {
        throw new RangeError('no such thing');
      },
      write('a'),
      write('b'),
    ]);
    expect(done).toMatchObject([
      { decision: { name: 'a' }, revision: 1 },
      { error: expect.any(RangeError) },
      { decision: { name: 'a' }, revision: 1 },
      { decision: { name: 'b' }, revision: 1 },
    ]);
    expect((await store.list('')).revision).toBe(1);
  });

  it('are answered though one makes a Plan that cannot be, and that one leaves nothing behind', async () => {
    const decider = deciderOf(createMemoryStore());
    const twice = (): { plan: Plan } => {
      const change = { key: keyOf('b'), ifRevision: 0, value: testInstance('b') };
      return { plan: { changes: [change, change] } };
    };
    const done = await decideAllAndCommit<{ plan: Plan }>(decider, [write('a'), twice]);
    expect(done).toMatchObject([{ revision: 1 }, { error: { message: expect.stringContaining('twice') } }]);
    expect(decider.cache.get('instance', keyOf('b'))).toBeUndefined();
  });

  it('are none when there are none', async () => {
    expect(await decideAllAndCommit(deciderOf(createMemoryStore()), [])).toEqual([]);
  });

  it('are decided anew, one by one, where others were first', async () => {
    const store = createMemoryStore();
    const decider = deciderOf(store);
    const theirs = testInstance('b');
    await store.commit([], [{ key: keyOf('b'), value: encodeRecord(theirs) }]);
    const attempts: number[] = [];
    const again = (attempt: number): void => {
      attempts.push(attempt);
      // What the store says has come by now.
      if (attempt > 0) decider.cache.apply([{ key: keyOf('b'), value: theirs, revision: 1 }], 1);
    };
    const done = await decideAllAndCommit(decider, [write('a'), write('b', again), write('c')]);
    expect(attempts).toEqual([0, 1]);
    expect(done).toMatchObject([{ revision: 2 }, { decision: { name: 'b' }, revision: 3 }, { revision: 2 }]);
    const { entries } = await store.list('instances/');
    expect(entries.map(({ key, value }) => decodeRecord(key, value).kind)).toEqual(Array(3).fill('instance'));
  });

  it('all fail with a store that fails, and leave nothing behind', async () => {
    const store: Store = {
      ...createMemoryStore(),
      commit: () => Promise.reject(new StoreError('Full', 'full')),
    };
    const decider = deciderOf(store);
    const done = await decideAllAndCommit(decider, [write('a'), write('b')]);
    expect(done).toMatchObject([{ error: { code: 'StoreFull' } }, { error: { code: 'StoreFull' } }]);
    expect(decider.cache.get('instance', keyOf('a'))).toBeUndefined();
  });
});
