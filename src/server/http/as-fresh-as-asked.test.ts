import { expect, it } from 'vitest';
import { createMemoryStore } from '../../store/memory/memory-store.ts';
import type { Store } from '../../store/store.ts';
import { startTestServer } from '../testing.ts';

/** The same store, whose news come only when they are let through. */
function lagging(store: Store): { store: Store; lag: () => void; catchUp: () => void } {
  const released = Promise.withResolvers<void>();
  let lags = false;
  return {
    store: {
      get: (key) => store.get(key),
      list: (prefix, options) => store.list(prefix, options),
      commit: (conditions, writes) => store.commit(conditions, writes),
      compact: (before) => store.compact(before),
      close: () => Promise.resolve(),
      async *watch(prefix, after, signal) {
        for await (const batch of store.watch(prefix, after, signal)) {
          if (lags) await released.promise;
          yield batch;
        }
      },
    },
    lag: () => void (lags = true),
    catchUp: () => released.resolve(),
  };
}

it('finds at another control plane what was just made at the first', async () => {
  const store = createMemoryStore();
  const first = await startTestServer({ store });
  const slow = lagging(store);
  const second = await startTestServer({ store: slow.store });
  slow.lag();

  const made = await first.client.create('pool', { metadata: { name: 'p1' }, spec: {} });
  const get = (headers: Record<string, string>) =>
    fetch(`${second.url}/v1/pools/p1`, { headers: { authorization: 'Bearer operator', ...headers } });
  expect((await get({})).status).toBe(404);
  // Its own newer write says nothing of what others wrote before.
  await second.client.create('pool', { metadata: { name: 'own' }, spec: {} });
  const waiting = get({ 'berth-at-least': String(made.metadata.revision) });
  slow.catchUp();
  expect((await waiting).status).toBe(200);
  expect((await get({ 'berth-at-least': '999999' })).status, 'of another epoch').toBe(200);
  expect((await get({ 'berth-at-least': 'x' })).status).toBe(400);
  await second.drop();
  await first.close();
});
