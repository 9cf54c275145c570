import { describe, expect, it } from 'vitest';
import { silentLogger } from '../base/log.ts';
import { seededPrng } from '../base/prng.ts';
import { systemClock } from '../base/system.ts';
import { Cache } from '../core/state/cache.ts';
import { defaultPolicy } from '../core/state/context.ts';
import { testInstance } from '../core/testing.ts';
import { createMemoryStore } from '../store/memory/memory-store.ts';
import type { Store } from '../store/store.ts';
import { Committer } from './commit.ts';
import { CommitTurns, type Pipelined, unshared } from './commit-turns.ts';
import { decideAllAndCommit, decideAndCommit, type Decider, forProject } from './decide.ts';

/** Who of `projects` may go on, in which order; those in `waiting` wait still. */
function turnsOf(turns: CommitTurns) {
  const admitted: string[] = [];
  return {
    admitted,
    enter(project: string, plans = 1, queued = 0, from?: Pipelined): void {
      const turn = turns.enter(project, { plans, queued, from });
      if (turn) void turn.then(() => admitted.push(project));
      else admitted.push(project);
    },
    async next(queued = 0): Promise<string[]> {
      admitted.length = 0;
      turns.next(queued);
      await Promise.resolve();
      return [...admitted];
    },
    async idle(): Promise<string[]> {
      admitted.length = 0;
      turns.idle();
      await Promise.resolve();
      return [...admitted];
    },
  };
}

describe('turns of the store', () => {
  it('make one project wait for nothing but the disk', async () => {
    const { admitted, enter, next } = turnsOf(new CommitTurns({ aheadMax: 5, sharedAheadMax: 2 }));
    for (let i = 0; i < 4; i++) enter('a', 1, i);
    expect(admitted).toEqual(['a', 'a', 'a', 'a']);
    for (let i = 0; i < 7; i++) enter('a', 1, 5);
    expect(admitted).toHaveLength(4);
    expect(await next(0)).toHaveLength(5);
    expect(await next(0)).toHaveLength(2);
  });

  it('are taken by projects one after the other, and within a project in the order of coming', async () => {
    const { enter, next } = turnsOf(new CommitTurns({ aheadMax: 4, sharedAheadMax: 4 }));
    for (const project of ['a', 'a', 'a', 'a', 'a', 'b', 'c', 'b']) enter(project, 1, 4);
    expect(await next()).toEqual(['a', 'b', 'c', 'a']);
    expect(await next()).toEqual(['b', 'a', 'a', 'a']);
  });

  it('let a quiet project go on at once while another floods', () => {
    const { admitted, enter } = turnsOf(new CommitTurns({ aheadMax: 1000, sharedAheadMax: 4 }));
    enter('quiet');
    for (let i = 0; i < 100; i++) enter('flood', 1, i);
    expect(admitted).toEqual(['quiet', 'flood', 'flood']);
    enter('quiet', 1, 50);
    expect(admitted).toEqual(['quiet', 'flood', 'flood', 'quiet']);
  });

  it('forget a project that has not written for long', async () => {
    const { admitted, enter, next } = turnsOf(new CommitTurns({ aheadMax: 1000, sharedAheadMax: 2 }));
    enter('quiet');
    for (let i = 0; i <= 1024; i++) await next();
    admitted.length = 0;
    for (let i = 0; i < 100; i++) enter('flood', 1, i);
    expect(admitted).toHaveLength(100);
  });

  it('count what belongs to no project as a line of its own that makes no other wait', async () => {
    const { admitted, enter, next } = turnsOf(new CommitTurns({ aheadMax: 4, sharedAheadMax: 2 }));
    enter(unshared);
    for (let i = 0; i < 3; i++) enter('a', 1, i);
    expect(admitted).toEqual([unshared, 'a', 'a', 'a']);
    for (const project of ['a', 'a', 'a', unshared]) enter(project, 1, 4);
    expect(await next()).toEqual(['a', unshared, 'a', 'a']);
  });

  it('count the Plans of a batch, and let one that is larger than all room through', async () => {
    const { enter, next } = turnsOf(new CommitTurns({ aheadMax: 10, sharedAheadMax: 10 }));
    enter('a', 50, 10);
    enter('a', 8, 10);
    enter('a', 8, 10);
    enter('a', 8, 10);
    expect(await next()).toEqual(['a']);
    expect(await next()).toEqual(['a', 'a']);
    expect(await next(10)).toEqual(['a']);
  });

  it('end when nothing is under way', async () => {
    const { enter, idle } = turnsOf(new CommitTurns({ aheadMax: 1, sharedAheadMax: 1 }));
    for (const project of ['a', 'a', 'b']) enter(project, 1, 1);
    expect(await idle()).toEqual(['a', 'b', 'a']);
  });
});

describe('connections with pipelined requests', () => {
  const connections = (count: number) =>
    Array.from({ length: count }, () => {
      const connection = {
        isRead: true,
        pause: () => void (connection.isRead = false),
        resume: () => void (connection.isRead = true),
      };
      return connection;
    });
  const limits = { aheadMax: 100, sharedAheadMax: 2, readAheadMax: 4 };

  it('are not read while many of their project wait, and are read again one after the other', async () => {
    const { enter, next } = turnsOf(new CommitTurns(limits));
    const [a, b] = connections(2);
    enter('quiet');
    for (let i = 0; i < 10; i++) enter('flood', 1, i, i % 2 === 0 ? a : b); // 1 goes on, 9 wait
    const isRead = () => [a?.isRead, b?.isRead];
    expect(isRead()).toEqual([false, false]);
    await next();
    await next();
    expect(isRead()).toEqual([false, false]); // 5 wait
    await next();
    expect(isRead()).toEqual([false, true]); // the fifth that waited came on b
    await next();
    expect(isRead()).toEqual([true, true]);
  });

  it('are read all the time while one project writes', () => {
    const { enter } = turnsOf(new CommitTurns({ ...limits, aheadMax: 1 }));
    const [a] = connections(1);
    for (let i = 0; i < 10; i++) enter('flood', 1, i, a);
    expect(a?.isRead).toBe(true);
  });

  it('are read again when nothing is under way, or the other project has not written for long', async () => {
    for (const end of ['idle', 'alone'] as const) {
      const turns = turnsOf(new CommitTurns(limits));
      const all = connections(10);
      turns.enter('quiet');
      for (const connection of all) turns.enter('flood', 1, 0, connection);
      expect(all.some(({ isRead }) => !isRead)).toBe(true);
      if (end === 'idle') await turns.idle();
      else for (let i = 0; i <= 1024; i++) await turns.next();
      expect(all.every(({ isRead }) => isRead)).toBe(true);
    }
  });
});

describe('a project that floods', () => {
  const keyOf = (project: string, name: string) => `instances/${project}/${name}`;
  const create = (project: string, name: string) => () => ({
    plan: {
      changes: [{ key: keyOf(project, name), ifRevision: 0, value: testInstance(name, {}, {}, { project }) }],
    },
  });

  /** A decider over a store of which each commit waits for `step`. */
  function stepped() {
    const memory = createMemoryStore();
    let asked = Promise.withResolvers<() => void>();
    const sizes: number[] = [];
    const store: Store = {
      ...memory,
      async commit(conditions, writes) {
        sizes.push(writes.length);
        await new Promise<void>((resolve) => asked.resolve(resolve));
        return memory.commit(conditions, writes);
      },
    };
    const cache = new Cache(() => 0);
    const committer = new Committer({ store, cache, log: silentLogger });
    const decider: Decider = { cache, committer, clock: systemClock, prng: seededPrng(1), policy: defaultPolicy };
    return {
      decider,
      sizes,
      /** Lets the commit that is under way, or the next, end. */
      async step() {
        const go = await asked.promise;
        asked = Promise.withResolvers();
        go();
      },
    };
  }

  it('has at most a small commit stand before what another writes', async () => {
    const { decider, sizes, step } = stepped();
    const [flooding, quiet] = ['flood', 'quiet'].map((project) => forProject(project, decider)) as [Decider, Decider];
    const done = { flood: 0, quiet: 0 };
    const all: Promise<unknown>[] = [];
    const write = (by: Decider, project: 'flood' | 'quiet', name: string): void => {
      all.push(decideAndCommit(by, create(project, name)).then(() => (done[project] += 1)));
    };
    write(quiet, 'quiet', 'q0');
    await Promise.resolve().then(() => {});
    for (let i = 0; i < 2_000; i++) write(flooding, 'flood', `f${i}`);
    write(quiet, 'quiet', 'q1');
    for (let commits = 1; done.flood < 2_000 || done.quiet < 3; commits++) {
      await step();
      await new Promise((resolve) => setImmediate(resolve));
      if (commits === 1) write(quiet, 'quiet', 'q2');
      if (commits === 3) expect(done.quiet).toBe(3);
    }
    await Promise.all(all);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(16 + 8 + 2);
  });

  it('has its batches decided piece by piece', async () => {
    const { decider, sizes, step } = stepped();
    const done: string[] = [];
    const first = decideAndCommit(forProject('quiet', decider), create('quiet', 'q0'));
    await Promise.resolve().then(() => {});
    await Promise.resolve().then(() => {});
    const warm = decideAndCommit(forProject('flood', decider), create('flood', 'f0'));
    const warmQuiet = decideAndCommit(forProject('quiet', decider), create('quiet', 'q1'));
    await step();
    const batch = decideAllAndCommit(
      forProject('flood', decider),
      Array.from({ length: 200 }, (_, i) => create('flood', `b${i}`)),
    ).then((results) => done.push(`flood ${results.length}`));
    const quiet = decideAndCommit(forProject('quiet', decider), create('quiet', 'q2')).then(() => done.push('quiet'));
    while (done.length < 2) {
      await step();
      await new Promise((resolve) => setImmediate(resolve));
    }
    await Promise.all([first, warm, warmQuiet, batch, quiet]);
    expect(done).toEqual(['quiet', 'flood 200']);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(16 + 3);
  });
});
