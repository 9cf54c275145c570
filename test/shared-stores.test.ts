// The product on the stores that several servers share: two servers, an agent, and a server that dies.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { freePort } from '../src/base/test-ports.ts';
import { createClient } from '../src/api/client.ts';
import { startEtcd } from '../src/store/etcd/test-etcd.ts';
import { postgresPrograms, startPostgres } from '../src/store/postgres/test-postgres.ts';
import { expectConsistent } from './consistent.ts';
import { startBerth, startFleet } from './processes.ts';

async function twoServersOn(store: string): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'berth-shared-'));
  const fleet = await startFleet(directory, { drivers: ['fake'], store });
  const url = `http://127.0.0.1:${await freePort()}`;
  const flags = ['--listen', url.slice('http://'.length), '--data-dir', join(directory, 'other')];
  const other = await startBerth(['server', '--store', store, ...flags], /listens on/);
  // Both have their tokens from the store.
  const { BERTH_TOKEN: token } = fleet.environment;
  const client = createClient({ fetch: (address, init) => fetch(address, init), url, token });
  try {
    await fleet.client.create('image', { metadata: { name: 'tiny' }, spec: { source: 'file:///tiny.qcow2' } });
    const { revision } = await fleet.client.list('image');
    while ((await client.list('image')).revision < revision);
    const made = await client.create('instance', {
      metadata: { name: 'web' },
      spec: { image: 'tiny', cpus: 1, memoryMiB: 64 },
    });
    const ready = await fleet.ready('web'); // told by the first, made by the other
    expect(ready.metadata.id).toBe(made.metadata.id);

    await fleet.restartServer(); // with SIGKILL
    for await (const change of client.watch('instance', { revision: 0 }, AbortSignal.timeout(30_000)))
      if (change.type === 'put' && change.resource.status.guest?.ready) break;
    await client.delete('instance', 'web');
    await fleet.gone('web');
    await Promise.all([expectConsistent(client), expectConsistent(fleet.client)]);
  } finally {
    await Promise.allSettled([fleet.stop(), other.stop()]);
    await rm(directory, { recursive: true, force: true });
  }
}

describe('two servers', { timeout: 120_000 }, () => {
  it.skipIf(postgresPrograms === null)('on PostgreSQL (package postgresql)', async () => {
    const server = await startPostgres();
    try {
      await twoServersOn(`postgres:${server.rest('berth')}`);
    } finally {
      await server.dispose();
    }
  });

  it('on etcd, of three members', async () => {
    const etcd = await startEtcd({ size: 3 });
    try {
      await twoServersOn(`etcd:${etcd.rest()}`);
    } finally {
      await etcd.stop();
    }
  });
});
