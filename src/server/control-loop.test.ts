import { expect, it } from 'vitest';
import { createMemoryStore } from '../store/memory/memory-store.ts';
import { type Store, StoreError } from '../store/store.ts';
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
