// TLS to real stores: the right authority connects; another, another name, or a missing certificate is refused with the setting that it is
// about.

import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestAuthority } from '../base/tls/test-authority.ts';
import { openEtcdStore } from './etcd/etcd-store.ts';
import { startEtcd, type TestEtcd } from './etcd/test-etcd.ts';
import { openPostgresStore } from './postgres/postgres-store.ts';
import { giveTo, postgresPrograms, startPostgres, type TestPostgres } from './postgres/test-postgres.ts';
import type { Store } from './store.ts';

let folder: string;
let own: TestAuthority;
let other: TestAuthority;
let server: { cert: string; key: string };
let client: { cert: string; key: string };
let foreign: { cert: string; key: string };
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'berth-store-tls-'));
  chmodSync(folder, 0o755);
  own = new TestAuthority(folder, 'own');
  other = new TestAuthority(folder, 'other');
  server = own.issue('server', 'IP:127.0.0.1');
  client = own.issue('berth', 'DNS:berth');
  foreign = other.issue('berth', 'DNS:berth');
});
afterAll(() => rmSync(folder, { recursive: true }));

/** A store that can be opened works. */
async function use(store: Store): Promise<void> {
  try {
    await store.commit([], [{ key: 'a', value: Buffer.from('1') }]);
    expect(Buffer.from((await store.get('a'))?.value ?? []).toString()).toBe('1');
  } finally {
    await store.close();
  }
}

describe.skipIf(postgresPrograms === null)('PostgreSQL over TLS (package postgresql)', () => {
  let postgres: TestPostgres;
  beforeAll(async () => {
    postgres = await startPostgres();
    await postgres.stop('fast');
    const key = join(postgres.folder, 'server.key');
    writeFileSync(key, readFileSync(server.key), { mode: 0o600 });
    if (process.getuid?.() === 0) {
      giveTo('postgres', key);
      chmodSync(key, 0o600);
    }
    const hba = [
      'local all all trust',
      'host all postgres 127.0.0.1/32 trust',
      'hostssl all berth 127.0.0.1/32 cert',
      '',
    ].join('\n');
    writeFileSync(join(postgres.folder, 'data/pg_hba.conf'), hba);
    const files = [`ssl_cert_file=${server.cert}`, `ssl_key_file=${key}`, `ssl_ca_file=${own.ca}`];
    await postgres.start(['ssl=on', ...files]);
    await postgres.sql('CREATE ROLE berth LOGIN SUPERUSER');
  });
  afterAll(() => postgres?.dispose());

  const open = (words: string, user = 'postgres'): Promise<Store> =>
    openPostgresStore({ rest: `${postgres.rest('tls', { user })}&${words}`, patienceMs: 2_000 });
  const trusted = () => `sslmode=verify-full&sslrootcert=${own.ca}`;

  it('is verified with the authority of sslrootcert', async () => use(await open(trusted())));

  it('shows a certificate to a server that asks for one', async () => {
    await use(await open(`${trusted()}&sslcert=${client.cert}&sslkey=${client.key}`, 'berth'));
    const { code, message } = await failureOf(open(trusted(), 'berth'));
    expect([code, message]).toEqual(['Denied', expect.stringContaining('set sslcert and sslkey in the URL')]);
  });

  it.each([
    ['another authority', () => `sslrootcert=${other.ca}`, 'set sslrootcert in the URL'],
    ['no authority', () => 'sslmode=verify-full', 'set sslrootcert in the URL'],
    [
      'a certificate of another authority',
      () => `${trusted()}&sslcert=${foreign.cert}&sslkey=${foreign.key}`,
      'the certificate of sslcert',
    ],
  ])('is refused with %s', async (_, words, message) => {
    const failure = await failureOf(open(words()));
    expect([failure.code, failure.message]).toEqual(['Denied', expect.stringContaining(message)]);
  });

  it('is refused when its certificate names another host', async () => {
    const rest = postgres.rest('tls').replace('127.0.0.1', 'localhost');
    const failure = await failureOf(openPostgresStore({ rest: `${rest}&${trusted()}`, patienceMs: 2_000 }));
    expect(failure.message).toContain('must name the host of the URL');
  });
});

describe('etcd over TLS', () => {
  let etcd: TestEtcd;
  beforeAll(async () => {
    const words = ['--cert-file', server.cert, '--key-file', server.key, '--trusted-ca-file', own.ca];
    etcd = await startEtcd({ scheme: 'https', words: [...words, '--client-cert-auth'] });
    // It does not say when it listens; the store waits for it.
    await use(await openEtcdStore({ rest: `${etcd.rest()}?ca=${own.ca}&${shown()}`, patienceMs: 60_000 }));
  });
  afterAll(() => etcd?.stop());

  const open = (words: string, rest = etcd.rest()): Promise<Store> =>
    openEtcdStore({ rest: `${rest}?${words}`, patienceMs: 2_000 });
  const shown = () => `cert=${client.cert}&key=${client.key}`;

  it('is verified with the authority of ca=, and is shown a certificate', async () =>
    use(await open(`ca=${own.ca}&${shown()}`)));

  it.each([
    ['another authority', () => `ca=${other.ca}&${shown()}`, 'set ca= of the store URL'],
    ['no authority', () => `tls=true&${shown()}`, 'set ca= of the store URL'],
    ['no certificate', () => `ca=${own.ca}`, 'see cert= and key='],
    ['a certificate of another authority', () => `ca=${own.ca}&cert=${foreign.cert}&key=${foreign.key}`, 'cert='],
  ])('is refused with %s', async (_, words, message) => {
    const failure = await failureOf(open(words()));
    expect([failure.code, failure.message]).toEqual(['Denied', expect.stringContaining(message)]);
  });

  it('is refused when its certificate names another host', async () => {
    const failure = await failureOf(open(`ca=${own.ca}&${shown()}`, etcd.rest().replace('127.0.0.1', 'localhost')));
    expect(failure.message).toContain('must name the host of the store URL');
  });
});

async function failureOf(opening: Promise<Store>): Promise<{ readonly code: string; readonly message: string }> {
  const store = await opening.catch((error: unknown) => error);
  if (!(store instanceof Error)) throw new Error('the store was opened');
  return { code: 'code' in store ? String(store.code) : '', message: store.message };
}
