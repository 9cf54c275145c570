import { afterAll, beforeAll } from 'vitest';
import { storeConformance } from '../conformance.ts';
import type { Store } from '../store.ts';
import { openEtcdStore } from './etcd-store.ts';
import { startEtcd, type TestEtcd } from './test-etcd.ts';

let etcd: TestEtcd;
beforeAll(async () => {
  etcd = await startEtcd();
});
afterAll(() => etcd.stop());

storeConformance({
  name: 'etcd',
  durable: true,
  shared: true,
  async open() {
    const rest = etcd.rest();
    const opened: Store[] = [];
    const another = async (): Promise<Store> => {
      const store = await openEtcdStore({ rest });
      opened.push(store);
      return store;
    };
    const store = await another();
    return {
      store,
      another,
      async reopen() {
        await opened.at(-1)?.close();
        return another();
      },
      async dispose() {
        for (const one of opened) await one.close();
      },
    };
  },
});
