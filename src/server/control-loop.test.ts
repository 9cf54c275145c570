import { expect, it } from 'vitest';
import { silentLogger } from '../base/log.ts';
import { seededPrng } from '../base/prng.ts';
import { systemClock } from '../base/system.ts';
import { Cache } from '../core/state/cache.ts';
import { encodeRecord } from '../core/state/codec.ts';
import { defaultPolicy } from '../core/state/context.ts';
import { keys, prefixOf } from '../core/state/keys.ts';
import { testImage } from '../core/testing.ts';
import { createMemoryStore } from '../store/memory/memory-store.ts';
import { Compacted, type Store, StoreError } from '../store/store.ts';
import { Committer } from './commit.ts';
import { ControlLoop } from './control-loop.ts';
import { startTestServer, testRegistration } from './testing.ts';

it('binds what fits in the commit that makes it, so the answer shows its host', async () => {
  const server = await startTestServer();
  await server.client.create('image', { metadata: { name: 'tiny' }, spec: { source: 'file:///tmp/tiny.qcow2' } });
  await server
    .agentClient('h1')
    .register(testRegistration({ capacity: { VCPU: 64, MEMORY_MB: 65_536, DISK_GB: 100 } }));
  const create = () => server.client.create('instance', { spec: { image: 'tiny', cpus: 1, memoryMiB: 64 } });
  // The later ones come while the first is being committed, and share the next commit.
  for (const { status } of await Promise.all(Array.from({ length: 16 }, create)))
    expect(status).toMatchObject({ phase: 'Scheduled', host: 'h1' });
  await server.close();
});

/** A store whose watches can be broken, and stay so until they are let go on. */
function breakable() {
  const memory = createMemoryStore();
  let broken = new AbortController();
  let held = false;
  const failure = () => new StoreError('Unavailable', 'the watch was broken');
  const store: Store = {
    get: (key) => memory.get(key),
    list: (prefix, options) => memory.list(prefix, options),
    commit: (conditions, writes) => memory.commit(conditions, writes),
    async *watch(prefix, after, signal) {
      if (held) throw failure();
      const { signal: end } = broken;
      yield* memory.watch(prefix, after, AbortSignal.any([signal, end]));
      if (end.aborted) throw failure();
    },
    compact: (before) => memory.compact(before),
    close: () => memory.close(),
  };
  return {
    store,
    memory,
    break(): void {
      held = true;
      broken.abort();
    },
    mend(): void {
      held = false;
      broken = new AbortController();
    },
  };
}

it('lets controllers rest while it does not follow the store, and has them catch up', async () => {
  const { store, memory, ...watches } = breakable();
  const server = await startTestServer({ store });
  await server.client.create('image', { metadata: { name: 'tiny' }, spec: { source: 'file:///tmp/tiny.qcow2' } });
  await server.client.create('instance', { metadata: { name: 'a' }, spec: { image: 'tiny', cpus: 1, memoryMiB: 64 } });
  watches.break();
  await server.client.delete('instance', 'a'); // what removes it is a controller
  await server.client.create('image', { metadata: { name: 'other' }, spec: { source: 'file:///tmp/other.qcow2' } });
  expect(await memory.get('instances/default/a')).not.toBeNull();

  const { revision } = await memory.list('', { limit: 1 });
  watches.mend();
  const left = new AbortController();
  for await (const batch of memory.watch('instances/', revision, left.signal))
    if (batch.some(({ value }) => value === null)) left.abort();
  expect(await memory.get('instances/default/a')).toBeNull();
  await server.close();
});

/** A loop without controllers, on a store of one image to which another comes while it is read. */
async function loopOn(watching: (store: Store) => Store['watch']) {
  const memory = createMemoryStore();
  await memory.commit([], [{ key: keys.image('tiny'), value: encodeRecord(testImage()) }]);
  const store: Store = Object.assign(Object.create(memory) as Store, {
    list: async (...of: Parameters<Store['list']>) => {
      const page = await memory.list(...of);
      if (of[0] === prefixOf('image'))
        await memory.commit([], [{ key: keys.image('other'), value: encodeRecord(testImage('other')) }]);
      return page;
    },
    watch: watching(memory),
  });
  const cache = new Cache(() => 0);
  const warned: string[] = [];
  const log = { ...silentLogger, warn: (message: string) => void warned.push(message) };
  const committer = new Committer({ store, cache, log });
  const decider = { cache, committer, clock: systemClock, prng: seededPrng(1), policy: defaultPolicy };
  return { loop: new ControlLoop({ decider, store, controllers: [], log }), cache, warned };
}

it('reads the store anew when it was compacted while it was read, and says so', async () => {
  let compacted = 2;
  const { loop, cache, warned } = await loopOn((memory) => (prefix, after, signal) => {
    if (compacted-- > 0) throw new Compacted(2);
    return memory.watch(prefix, after, signal);
  });
  await loop.start();
  expect(loop.ready).toBe(true);
  expect([...cache.list('image')].map(({ key }) => key)).toEqual(['tiny', 'other'].map(keys.image));
  expect(warned).toEqual(Array.from({ length: 2 }, () => 'reading the store again: it was compacted meanwhile'));
  await loop.stop();
});

it('ends its start when it is stopped meanwhile', async () => {
  const asked = Promise.withResolvers<void>();
  const { loop, cache } = await loopOn(
    () =>
      async function* (_prefix, _after, signal) {
        asked.resolve();
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
        yield* [];
      },
  );
  const starting = loop.start();
  await asked.promise;
  await loop.stop();
  await starting;
  expect(loop.ready).toBe(false);
  expect(cache.count('image')).toBe(0);
});
