// Each backend as plainly as its client can write to it, as durable as under Berth: one row or key per value, prepared statements, no
// log, no conditions, no checksums. It is the ceiling of any store on that backend.

import { Client as GrpcClient, credentials, Metadata } from '@grpc/grpc-js';
import Database from 'better-sqlite3';
import { Client as PostgresClient } from 'pg';
import { type CallName, type Calls, methods } from '../src/store/etcd/etcd-rpc.ts';

export interface Row {
  readonly key: string;
  readonly value: Uint8Array;
}

export interface RawStore {
  /** Durable when it resolves. */
  putOne(row: Row): Promise<void>;
  /** All in one transaction. Callers are numbered from 0. */
  putAll(rows: readonly Row[], caller: number): Promise<void>;
  close(): Promise<void>;
}

export function rawSqlite(path: string): RawStore {
  const db = new Database(path);
  db.pragma('page_size = 8192');
  db.pragma('journal_mode = WAL');
  db.pragma('synchronous = FULL');
  // Tuned as the store's own file is: no second process, and checkpoints that are few and large.
  db.pragma('locking_mode = EXCLUSIVE');
  db.pragma('wal_autocheckpoint = 65536');
  db.exec('CREATE TABLE entries (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID');
  const put = db.prepare<[string, Uint8Array]>('INSERT OR REPLACE INTO entries VALUES (?, ?)');
  /** What all callers have by then: one transaction, as nothing else could be in one file. */
  const waiting: { readonly rows: readonly Row[]; readonly done: () => void }[] = [];
  const putWaiting = db.transaction(() => {
    for (const { rows } of waiting) for (const { key, value } of rows) put.run(key, value);
  });
  const flush = (): void => {
    putWaiting();
    for (const { done } of waiting.splice(0)) done();
  };
  return {
    putOne: async ({ key, value }) => void put.run(key, value),
    putAll: (rows) =>
      new Promise((done) => {
        if (waiting.push({ rows, done }) === 1) setImmediate(flush);
      }),
    close: async () => void db.close(),
  };
}

/** A connection for each caller, so that the server can let them share an fsync. */
export async function rawPostgres(port: number, callers: number): Promise<RawStore> {
  const clients = await Promise.all(
    Array.from({ length: callers }, async () => {
      const client = new PostgresClient({ host: '127.0.0.1', port, user: 'postgres', database: 'postgres' });
      await client.connect();
      return client;
    }),
  );
  const clientOf = (caller: number): PostgresClient => {
    const client = clients[caller];
    if (!client) throw new Error(`there are ${clients.length} callers, and this is number ${caller}`);
    return client;
  };
  await clientOf(0).query('CREATE TABLE raw (key text COLLATE "C" PRIMARY KEY, value bytea NOT NULL)');
  const upsert = 'ON CONFLICT (key) DO UPDATE SET value = excluded.value';
  return {
    async putOne({ key, value }) {
      await clientOf(0).query({
        name: 'one',
        text: `INSERT INTO raw VALUES ($1, $2) ${upsert}`,
        values: [key, Buffer.from(value.buffer, value.byteOffset, value.byteLength)],
      });
    },
    async putAll(rows, caller) {
      await clientOf(caller).query({
        name: 'all',
        text: `INSERT INTO raw SELECT * FROM unnest($1::text[], $2::bytea[]) ${upsert}`,
        values: [
          rows.map(({ key }) => key),
          rows.map(({ value }) => Buffer.from(value.buffer, value.byteOffset, value.byteLength)),
        ],
      });
    },
    close: async () => void (await Promise.all(clients.map((client) => client.end()))),
  };
}

export function rawEtcd(endpoint: string): RawStore {
  const client = new GrpcClient(endpoint, credentials.createInsecure());
  const metadata = new Metadata();
  const call = <N extends CallName>(name: N, request: Calls[N]['request']): Promise<void> =>
    new Promise((resolve, reject) => {
      const { path, requestSerialize, responseDeserialize } = methods[name];
      client.makeUnaryRequest(path, requestSerialize, responseDeserialize, request, metadata, (error) =>
        error ? reject(error) : resolve(),
      );
    });
  const operationOf = ({ key, value }: Row) => ({ requestPut: { key: Buffer.from(key), value: [value] } });
  return {
    putOne: ({ key, value }) => call('put', { key: Buffer.from(key), value }),
    putAll: (rows) => call('txn', { compare: [], success: rows.map(operationOf), failure: [] }),
    close: async () => client.close(),
  };
}
