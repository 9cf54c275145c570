// The product on the stores that several servers share: two servers, an agent, a server that dies, watches that go on at the other, and
// the whole of it moved to another kind of store and back; then a backup restored in its place.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { freePort } from '../src/base/test-ports.ts';
import { type Client, createClient } from '../src/api/client/client.ts';
import type { Instance } from '../src/api/resources/instance.ts';
import { startEtcd } from '../src/store/etcd/test-etcd.ts';
import { postgresPrograms, startPostgres } from '../src/store/postgres/test-postgres.ts';
import { expectConsistent } from './consistent.ts';
import { writeOutsideRecords } from './outside-records.ts';
import { runBerth, startBerth, startFleet } from './processes.ts';

/** `elsewhere`: an empty store of the same kind. */
async function twoServersOn(store: string, elsewhere: string): Promise<void> {
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
    const { revision: upTo } = await fleet.client.list('instance');
    // Told in turn by one and the other, each going on where the last left off, and all at once by one: the same.
    const inTurn = await changesOf([client, fleet.client], revision, upTo);
    expect(inTurn.length).toBeGreaterThan(4);
    expect(inTurn).toEqual(await changesOf([fleet.client], revision, upTo));
    await Promise.all([expectConsistent(client), expectConsistent(fleet.client)]);

    await client.create('instance', { metadata: { name: 'kept' }, spec: { image: 'tiny', cpus: 1, memoryMiB: 64 } });
    await fleet.ready('kept');
    const { items } = await client.list('instance');
    const outside = await writeOutsideRecords({ url, token });
    const claimed = await outside.read({ url, token });
    const backup = join(directory, 'backup.jsonl.zst');
    const written = await runBerth(['backup', backup], { ...fleet.environment, BERTH_URL: url });
    expect(written).toMatchObject({ code: 0, stdout: expect.stringContaining('read back and complete') });
    await Promise.all([fleet.stop(), other.stop()]);
    await moves(store, `sqlite:${directory}/between.db`);
    await moves(`sqlite:${directory}/between.db`, elsewhere);
    const moved = await startBerth(['server', '--store', elsewhere, ...flags], /listens on/);
    try {
      const found = await client.list('instance');
      const told = ({ metadata, spec }: Instance) => ({ id: metadata.id, spec });
      expect(found.items.map(told)).toEqual(items.map(told));
      expect(await outside.read({ url, token })).toEqual(claimed);
      await outside.remove({ url, token });
    } finally {
      await moved.stop();
    }
    const brought = await runBerth(['restore', backup, '--store', elsewhere, '--yes']);
    expect(brought).toMatchObject({ code: 0, stdout: expect.stringContaining('restored') });
    const restored = await startBerth(['server', '--store', elsewhere, ...flags], /listens on/);
    try {
      expect(await outside.read({ url, token })).toEqual(claimed);
    } finally {
      await restored.stop();
    }
  } finally {
    await Promise.allSettled([fleet.stop(), other.stop()]);
    await rm(directory, { recursive: true, force: true });
  }
}

/**
 * What happened to instances after one revision up to another, told by these in turn: each tells one change, and the next goes on. There
 * is one instance, so that no revision has two changes.
 */
async function changesOf(clients: readonly Client[], from: number, upTo: number): Promise<string[]> {
  const told: string[] = [];
  let revision = from;
  for (let turn = 0; revision < upTo; turn++) {
    const client = clients[turn % clients.length] ?? expect.unreachable();
    for await (const change of client.watch('instance', { revision }, AbortSignal.timeout(30_000))) {
      if ('resource' in change) told.push(`${change.type} ${change.resource.metadata.name} ${change.revision}`);
      revision = Math.max(revision, change.revision);
      if (revision >= upTo || (clients.length > 1 && 'resource' in change)) break;
    }
  }
  return told;
}

async function moves(from: string, to: string): Promise<void> {
  const moved = await runBerth(['store', 'migrate', from, to]);
  expect(moved).toMatchObject({ code: 0, stdout: expect.stringContaining('moved') });
  expect(moved.stderr).not.toContain('led the first store'); // its servers were stopped
  const checked = await runBerth(['store', 'check', to]);
  expect(checked).toMatchObject({ code: 0, stdout: expect.stringContaining('0 faults') });
}

describe('two servers', { timeout: 240_000 }, () => {
  it.skipIf(postgresPrograms === null)('on PostgreSQL (package postgresql)', async () => {
    const server = await startPostgres();
    try {
      await twoServersOn(`postgres:${server.rest('berth')}`, `postgres:${server.rest('elsewhere')}`);
    } finally {
      await server.dispose();
    }
  });

  it('on etcd, of three members', async () => {
    const etcd = await startEtcd({ size: 3 });
    try {
      await twoServersOn(`etcd:${etcd.rest()}`, `etcd:${etcd.rest('elsewhere')}`);
    } finally {
      await etcd.stop();
    }
  });
});
