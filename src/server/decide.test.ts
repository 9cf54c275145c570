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
import { ApiError } from '../api/errors.ts';
import { decideAllAndCommit, decideAndCommit, type Decider } from './decide.ts';

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

describe('a refusal', () => {
  /** Makes an instance, unless there is one of its name. */
  const create = (name: string) => (snapshot: Snapshot) => {
    if (snapshot.get('instance', keyOf(name))) throw new ApiError('Conflict', `${name} is there`);
    return { plan: { changes: [{ key: keyOf(name), ifRevision: 0, value: testInstance(name) }] } };
  };

  it('for what another is about to write is told when that is durable, and not when it came to nothing', async () => {
    const memory = createMemoryStore();
    let fails = false;
    const store: Store = Object.assign(Object.create(memory) as Store, {
      commit: (...of: Parameters<Store['commit']>) =>
        fails ? Promise.reject(new StoreError('Unavailable', 'away')) : memory.commit(...of),
    });
    const decider = deciderOf(store);
    const [first, second] = await Promise.allSettled([
      decideAndCommit(decider, create('a')),
      decideAndCommit(decider, create('a')),
    ]);
    expect([first.status, second.status]).toEqual(['fulfilled', 'rejected']);
    fails = true;
    const third = decideAndCommit(decider, create('b')).catch((error: unknown) => {
      fails = false;
      throw error;
    });
    const fourth = decideAndCommit(decider, create('b'));
    await expect(third).rejects.toMatchObject({ code: 'Unavailable' });
    await expect(fourth).resolves.toMatchObject({ revision: 2 });
    // Nor does anybody wait for what has gone with it.
    await expect(decideAndCommit(decider, create('b'))).rejects.toThrow('b is there');
  });

  it('of one of many, for another of them that came to nothing, is thought over; the order stays', async () => {
    const memory = createMemoryStore();
    let fails = 1;
    const store: Store = Object.assign(Object.create(memory) as Store, {
      commit: (...of: Parameters<Store['commit']>) =>
        fails-- > 0 ? Promise.reject(new StoreError('Unavailable', 'away')) : memory.commit(...of),
    });
    const order: string[] = [];
    const named = (who: string) => (snapshot: Snapshot) => {
      order.push(who);
      return create('a')(snapshot);
    };
    const done = await decideAllAndCommit(deciderOf(store), ['x', 'y', 'z'].map(named));
    expect(done).toMatchObject([{ error: { code: 'Unavailable' } }, { revision: 1 }, { error: { code: 'Conflict' } }]);
    expect(order.slice(0, 5)).toEqual(['x', 'y', 'z', 'y', 'z']);
  });

  it('is told though more and more is written', async () => {
    const decider = deciderOf(createMemoryStore());
    await decideAndCommit(decider, create('a'));
    let over = false;
    const endless = async (): Promise<void> => {
      for (let i = 0; !over; i++) await decideAndCommit(decider, write(`w${i % 3}`));
    };
    const writing = [endless(), endless()];
    await expect(decideAndCommit(decider, create('a'))).rejects.toThrow('a is there');
    over = true;
    await Promise.all(writing);
  });

  it('is told at once when nothing is under way', async () => {
    const decider = deciderOf(createMemoryStore());
    await decideAndCommit(decider, create('a'));
    await expect(decideAndCommit(decider, create('a'))).rejects.toThrow('a is there');
  });
});

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
