// The backends that suite `store` measures, each with a server of its own that ends with the bench.

import { join } from 'node:path';
import { postgresPrograms, startPostgres } from '../src/store/postgres/test-postgres.ts';
import { startEtcd } from '../src/store/etcd/test-etcd.ts';
import { type RawStore, rawEtcd, rawPostgres, rawSqlite } from './store-raw.ts';

export interface Backend {
  /** After each name of a row. */
  readonly suffix: '' | '_postgres' | '_etcd';
  /** Of a store that no other process has open. */
  storeUrl(name: string): string;
  /** The backend itself, without Berth, for this many callers at once. */
  raw(callers: number): Promise<RawStore>;
  stop(): Promise<void>;
}

export type BackendName = 'sqlite' | 'postgres' | 'etcd';

export async function startBackend(name: BackendName, directory: string): Promise<Backend> {
  switch (name) {
    case 'sqlite':
      return {
        suffix: '',
        storeUrl: (store) => `sqlite:${join(directory, `${store}.db`)}`,
        raw: async () => rawSqlite(join(directory, 'raw.db')),
        stop: async () => {},
      };
    case 'postgres': {
      if (postgresPrograms === null) throw new Error('PostgreSQL is not installed: apt-get install postgresql');
      const server = await startPostgres();
      return {
        suffix: '_postgres',
        storeUrl: (store) => `postgres:${server.rest(store)}`,
        raw: (callers) => rawPostgres(server.port, callers),
        stop: () => server.dispose(),
      };
    }
    case 'etcd': {
      // Room for what the stores of one run write: etcd keeps every version until it is compacted.
      const server = await startEtcd({ words: ['--quota-backend-bytes', String(6 * 2 ** 30)] });
      const [member] = server.members;
      return {
        suffix: '_etcd',
        storeUrl: (store) => `etcd:${server.rest(store)}`,
        raw: async () => rawEtcd(`127.0.0.1:${member?.clientPort}`),
        stop: () => server.stop(),
      };
    }
  }
}
