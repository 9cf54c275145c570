// The control plane killed between any two steps of an instance's life, one step after the other: right before and right after each
// of its commits. A real agent with the fake driver goes on meanwhile. Whatever the moment, the instance is made once and runs once.

import { describe, expect, it } from 'vitest';
import { silentLogger } from '../src/base/log.ts';
import { systemClock, systemFetch, systemPrng } from '../src/base/system.ts';
import { createAgent } from '../src/agent/agent.ts';
import { createFakeDriver } from '../src/agent/drivers/fake/driver.ts';
import { createFakeWorld } from '../src/agent/drivers/fake/world.ts';
import { createClient, type FetchLike } from '../src/api/client/client.ts';
import { expectConsistent } from './consistent.ts';
import { createMemoryStore } from '../src/store/memory/memory-store.ts';
import type { Store } from '../src/store/store.ts';
import { startTestServer } from '../src/server/testing.ts';

interface Death {
  /** The commit at which the process dies, counted from 1. */
  readonly at: number;
  /** Whether that commit still reaches the store. */
  readonly applied: boolean;
}

/** A store as a process sees it that dies at one of its commits: from then on nothing ever comes back. */
function dyingStore(store: Store, death: Death) {
  const died = Promise.withResolvers<void>();
  let commits = 0;
  let dead = false;
  const wrapped: Store = {
    get: (key) => store.get(key),
    list: (prefix, options) => store.list(prefix, options),
    watch: (prefix, after, signal) => store.watch(prefix, after, signal),
    compact: (before) => store.compact(before),
    async commit(conditions, writes) {
      if (dead) return new Promise(() => {});
      commits += 1;
      if (commits < death.at) return store.commit(conditions, writes);
      dead = true;
      if (death.applied) await store.commit(conditions, writes);
      died.resolve();
      return new Promise(() => {});
    },
    close: () => Promise.resolve(),
  };
  return { store: wrapped, died: died.promise, dead: () => dead, count: () => commits };
}

const instant = { pullMs: 1, cloneMs: 1, startMs: 1, bootMs: 1, shutdownMs: 1 };

/** One life of one instance, with the control plane dying at `death`; resolves to the number of its commits. */
async function live(death: Death): Promise<number> {
  const store = createMemoryStore();
  const dying = dyingStore(store, death);
  let over = false;
  // It may die before it has begun: then nothing shows it.
  const begun = await Promise.race([startTestServer({ store: dying.store }), dying.died]);
  let server = begun ?? (await startTestServer({ store }));
  const restarted = dying.died.then(async () => {
    if (over || server !== begun) return; // it may die of its end, too
    await server.drop();
    server = await startTestServer({ store });
  });
  const fetch: FetchLike = async (url, init) => systemFetch(url.replace('http://berth', server.url), init);
  const client = createClient({ fetch, url: 'http://berth', token: 'operator' });
  const world = createFakeWorld({ clock: systemClock, latencies: instant });
  let ledger: string | null = null;
  const agent = createAgent({
    client: createClient({ fetch, url: 'http://berth', token: 'host:h1' }),
    hostName: 'h1',
    agentVersion: 'test',
    identity: () => Promise.resolve(`agent_${'0'.repeat(26)}`),
    drivers: [createFakeDriver({ world, host: 'h1', prng: systemPrng() })],
    ledgerFile: {
      read: () => Promise.resolve(ledger),
      write: (text) => {
        ledger = text;
        return Promise.resolve();
      },
      setAside: () => Promise.resolve('nowhere'),
    },
    measure: () =>
      Promise.resolve({
        machineId: 'm1',
        bootId: 'b1',
        architecture: 'amd64',
        capacity: { VCPU: 4, MEMORY_MB: 4096 },
        reserved: {},
      }),
    clock: systemClock,
    prng: systemPrng(),
    log: silentLogger,
  });
  const again = async <T>(what: () => Promise<T>): Promise<T> => {
    for (;;) {
      try {
        return await what();
      } catch (error) {
        if (!(error instanceof Error && 'code' in error && error.code === 'Unavailable')) throw error;
        await restarted;
      }
    }
  };
  try {
    await agent.start();
    const image = { metadata: { name: 'tiny' }, spec: { source: 'file:///tiny', defaults: { cpus: 1 } } };
    await again(() => client.create('image', image, { idempotencyKey: 'image' }));
    const body = { metadata: { name: 'web' }, spec: { image: 'tiny', memoryMiB: 64, stopGraceMs: 0 } };
    const made = await again(() => client.create('instance', body, { idempotencyKey: 'web' }));
    const { id } = made.metadata;
    const phase = () =>
      again(() => client.get('instance', 'web')).then(({ status }) => `${status.phase} ${status.guest?.ready}`);
    await expect.poll(phase, { timeout: 30_000, interval: 5 }).toBe('Running true');
    expect(world.runningCopies(id)).toBe(1);
    expect(await again(() => client.get('instance', 'web'))).toMatchObject({
      metadata: { id },
      status: { incarnation: 1, restartCount: 0 },
    });

    await again(() =>
      client
        .delete('instance', 'web')
        .catch((error) => (error.code === 'NotFound' ? undefined : Promise.reject(error))),
    );
    const left = () => again(() => client.list('instance')).then(({ items }) => items.length);
    await expect.poll(left, { timeout: 30_000, interval: 5 }).toBe(0);
    expect(world.guests()).toEqual([]);
    expect((await store.list('allocations/')).entries).toEqual([]);
    expect(world.doubleStarts).toEqual([]);
    await expectConsistent(client);
    return dying.count();
  } finally {
    await agent.stop();
    if (dying.dead()) await restarted;
    over = true;
    await server.drop();
    await store.close();
  }
}

/** How many commits one life takes varies a little: what comes together is committed together. */
const commitsMax = 16;

describe('a control plane killed', () => {
  it('has fewer commits to be killed at than are tried below', async () => {
    const commits = await live({ at: Number.POSITIVE_INFINITY, applied: true });
    expect(commits).toBeGreaterThan(6);
    expect(commits).toBeLessThanOrEqual(commitsMax);
  });

  for (let at = 1; at <= commitsMax; at++) {
    for (const applied of [false, true]) {
      it(
        `right ${applied ? 'after' : 'before'} its commit ${at} loses nothing and doubles nothing`,
        () => live({ at, applied }),
        60_000,
      );
    }
  }
});
