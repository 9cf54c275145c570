import { afterAll, beforeAll, describe } from 'vitest';
import { storeConformance } from '../conformance.ts';
import type { Store } from '../store.ts';
import { openPostgresStore } from './postgres-store.ts';
import { postgresPrograms, startPostgres, type TestPostgres } from './test-postgres.ts';

describe.skipIf(postgresPrograms === null)('with a server (package postgresql)', () => {
  let server: TestPostgres;
  let schemas = 0;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server.dispose());

  storeConformance({
    name: 'PostgreSQL',
    durable: true,
    shared: true,
    modelRuns: 40,
    async open() {
      const rest = server.rest(`s${schemas++}`);
      const opened: Store[] = [];
      const openOne = async (): Promise<Store> => {
        const store = await openPostgresStore({ rest });
        opened.push(store);
        return store;
      };
      const store = await openOne();
      return {
        store,
        another: openOne,
        async reopen() {
          await store.close();
          return openOne();
        },
        async dispose() {
          await Promise.all(opened.map((one) => one.close()));
        },
      };
    },
  });
});
