import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
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

it('forgets only what its entries have followed, whenever it is cut off', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-follow-'));
  const path = join(folder, 'store.db');
  const store = await openSqliteStore({ path });
  const commits = Array.from({ length: 40 }, (_, i) =>
    store.commit(
      [],
      Array.from({ length: 100 }, (__, n) => ({ key: `k/${(i * 37 + n) % 1_000}`, value: Buffer.from(`${i}`) })),
    ),
  );
  await Promise.all(commits);
  await store.compact(30); // long before it is quiet
  const copy = join(folder, 'copy.db');
  for (const end of ['', '-wal']) copyFileSync(`${path}${end}`, `${copy}${end}`); // as a crash would leave it
  const found = await openSqliteStore({ path: copy });
  expect(await found.list('')).toEqual(await store.list(''));
  await found.close();
  await store.close();
  rmSync(folder, { recursive: true });
});
