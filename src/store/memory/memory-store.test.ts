import { describe, expect, it } from 'vitest';
import { storeConformance } from '../conformance.ts';
import { createMemoryStore } from './memory-store.ts';

storeConformance({
  name: 'memory',
  durable: false,
  modelRuns: 200,
  async open() {
    const store = createMemoryStore();
    return { store, dispose: () => store.close() };
  },
});

describe('the memory store in a simulation', () => {
  it('needs microtasks only: all is done before the next turn of the event loop', async () => {
    const store = createMemoryStore();
    const turn = new Promise<string>((resolve) => setImmediate(resolve, 'turn'));
    const work = (async () => {
      for (let i = 1; i <= 100; i++) await store.commit([], [{ key: 'a', value: new Uint8Array([i]) }]);
      for await (const batch of store.watch('', 0, new AbortController().signal))
        if (batch.at(-1)?.revision === 100) break;
      return 'work';
    })();
    expect(await Promise.race([turn, work])).toBe('work');
  });
});
