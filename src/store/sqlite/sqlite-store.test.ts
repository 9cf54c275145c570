import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { storeConformance } from '../conformance.ts';
import { openSqliteStore } from './sqlite-store.ts';

storeConformance({
  name: 'SQLite',
  durable: true,
  async open() {
    const folder = mkdtempSync(join(tmpdir(), 'berth-store-'));
    const path = join(folder, 'store.db');
    let store = await openSqliteStore({ path });
    return {
      store,
      async reopen() {
        await store.close();
        store = await openSqliteStore({ path });
        return store;
      },
      async dispose() {
        await store.close();
        rmSync(folder, { recursive: true });
      },
    };
  },
});
