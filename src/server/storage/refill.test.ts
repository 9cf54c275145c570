import { expect, it } from 'vitest';
import { ApiError } from '../../api/errors.ts';
import { system } from '../../base/system.ts';
import { restoredRecord } from '../../core/operations/restored-record.ts';
import { decodeRecord } from '../../core/state/codec.ts';
import { keys } from '../../core/state/keys.ts';
import { createMemoryStore } from '../../store/memory/memory-store.ts';
import { type Store, StoreError } from '../../store/store.ts';
import { type Backup, readBackup, writeBackup } from './backup.ts';
import { checkStore } from './check-store.ts';
import { closeForMove, refill, type Refill } from './refill.ts';
import { readyz, startTestServer, testRegistration } from '../testing.ts';

const backupOf = (store: Store): Promise<Backup> => readBackup(writeBackup(store, { version: 'test', nowMs: 1 }));
const restoring = ({ entries, revision }: Backup, changes: Partial<Refill> = {}): Refill => ({
  entries,
  convert: (record, { newestSession }) => restoredRecord(record, { nowMs: 1_000, newestSession }),
  by: 'restore',
  newEpoch: 'epoch-restored',
  nowMs: 1_000,
  why: 'a restore is under way',
  restored: { atMs: 1_000, backupRevision: revision },
  ...changes,
});
const image = { metadata: { name: 'tiny' }, spec: { source: 'file:///tmp/tiny.qcow2' } };
const instance = (name: string) => ({ metadata: { name }, spec: { image: 'tiny', cpus: 1, memoryMiB: 64 } });

async function clusterIn(store: Store) {
  const entry = (await store.get(keys.cluster)) ?? expect.unreachable();
  const record = decodeRecord(keys.cluster, entry.value);
  return record.kind === 'cluster' ? record : expect.unreachable();
}

it('makes a store that is in use what the backup says; who watches is told, and work goes on', async () => {
  const server = await startTestServer();
  const { client, store } = server;
  await client.create('image', image);
  await server.agentClient('h1').register(testRegistration());
  await client.create('instance', instance('before'));
  const backup = await backupOf(store);
  await client.create('instance', instance('after'));
  await client.delete('instance', 'before', { force: true }).catch(() => undefined);
  const list = await client.list('instance');

  const watching = (async () => {
    for await (const _ of client.watch('instance', { revision: list.revision, epoch: list.epoch ?? '' }));
  })();
  watching.catch(() => undefined); // looked at below
  await system.turn();
  await refill(store, restoring(backup));
  await expect(watching).rejects.toMatchObject({ code: 'Compacted' });
  await expect(
    (async () => {
      for await (const _ of client.watch('instance', { revision: list.revision, epoch: list.epoch ?? '' }));
    })(),
  ).rejects.toMatchObject({ code: 'Compacted', field: 'epoch' });

  const { items, epoch } = await client.list('instance');
  expect(epoch).toBe('epoch-restored');
  expect(items.map(({ metadata }) => metadata.name)).toEqual(['before']);
  expect(items[0]?.metadata.deletionRequestedAtMs).toBeUndefined();
  await client.create('instance', instance('later'));
  expect((await client.list('instance')).items).toHaveLength(2);
  await server.close();
});

it('lets no control plane write from its beginning to its end, and stays closed when it was broken off', async () => {
  const server = await startTestServer();
  const { client, store } = server;
  await client.create('image', image);
  for (let i = 0; i < 30; i++) await client.create('instance', instance(`i${i}`));
  const backup = await backupOf(store);
  await client.delete('instance', 'i3');

  let commits = 0;
  const breaking: Store = {
    get: (key) => store.get(key),
    list: (prefix, options) => store.list(prefix, options),
    watch: (prefix, after, signal) => store.watch(prefix, after, signal),
    compact: (before) => store.compact(before),
    close: () => Promise.resolve(),
    commit(conditions, writes) {
      commits += 1;
      if (commits === 2) throw new StoreError('Unavailable', 'broken off');
      return store.commit(conditions, writes);
    },
  };
  await expect(refill(breaking, restoring(backup))).rejects.toThrow('broken off');
  await system.turn();
  const refused = await client.create('instance', instance('late')).catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(ApiError);
  expect(refused).toMatchObject({ code: 'Unavailable', message: expect.stringContaining('a restore is under way') });
  expect(server.plane.ready()).toBe(false);
  await expect(readyz(server.plane)).rejects.toThrow('a restore is under way');
  expect((await clusterIn(store)).closed).toBeDefined();

  await refill(store, restoring(backup));
  await system.turn();
  expect(server.plane.ready()).toBe(true);
  expect((await clusterIn(store)).closed).toBeUndefined();
  await client.create('instance', instance('late'));
  await server.close();
});

it('fills an empty store with the same entries', async () => {
  const server = await startTestServer();
  await server.client.create('image', image);
  for (let i = 0; i < 20; i++) await server.client.create('instance', instance(`i${i}`));
  const backup = await backupOf(server.store);
  await server.close();
  const other = createMemoryStore();
  const { written, deleted } = await refill(other, restoring(backup, { convert: (record) => record }));
  const { entries } = await other.list('');
  const ofTheFleet = ([key]: readonly [string, Uint8Array]): boolean => !/^(cluster|leader)/.test(key);
  const found = entries.map(({ key, value }) => [key, Buffer.from(value)] as const).filter(ofTheFleet);
  expect(found).toEqual(
    [...backup.entries].map(([key, value]) => [key, Buffer.from(value)] as const).filter(ofTheFleet),
  );
  expect({ written, deleted }).toEqual({ written: found.length, deleted: 0 });
  expect(await checkStore(other)).toMatchObject({ faults: [], entries: entries.length });
});

it('closes a store for a move, which may be broken off, taken back and ended', async () => {
  const server = await startTestServer();
  await closeForMove(server.store, 5); // and broken off
  await system.turn();
  await expect(server.client.create('image', image)).rejects.toThrow('a move to another store is in progress');
  const again = await closeForMove(server.store, 6);
  await again.reopen();
  await system.turn();
  await server.client.create('image', image);
  const ended = await closeForMove(server.store, 7);
  expect(ended.ledBy).toBeDefined(); // this server runs on
  expect((await checkStore(server.store)).closed).toContain('a move to another store is in progress');
  await ended.seal();
  await expect(closeForMove(server.store, 8)).rejects.toThrow('it has been moved to another store');
  await server.close();
});

it('changes nothing for a backup with a record that it cannot read', async () => {
  const server = await startTestServer();
  await server.client.create('image', image);
  const backup = await backupOf(server.store);
  const before = await server.store.list('');
  const newer = Buffer.from('{"kind":"instance","schemaVersion":99}');
  const entries = new Map([...backup.entries, ['instances/default/newer', newer] as const]);
  await expect(refill(server.store, restoring({ ...backup, entries }))).rejects.toThrow('start the newer version');
  expect(await server.store.list('')).toEqual(before);
  await server.close();
});

it('ends the sessions since an earlier restore of the same backup', async () => {
  const server = await startTestServer();
  const agent = server.agentClient('h1');
  await agent.register(testRegistration());
  const backup = await backupOf(server.store);
  await refill(server.store, restoring(backup));
  await system.turn();
  const { epoch } = await agent.register(testRegistration({ session: 'session-2' }));
  await refill(server.store, restoring(backup, { newEpoch: 'epoch-again' }));
  await system.turn();
  await expect(agent.heartbeat({ epoch })).rejects.toMatchObject({ code: 'StaleEpoch' });
  const third = await agent.register(testRegistration({ session: 'session-3' }));
  expect(third.epoch).toBeGreaterThan(epoch);
  await server.close();
});

it('gives no backup of a store that is closed', async () => {
  const server = await startTestServer();
  await closeForMove(server.store, 5);
  await expect(backupOf(server.store)).rejects.toThrow('are incomplete');
  await server.close();
});

it('finds what is wrong with a store', async () => {
  const store = createMemoryStore();
  await store.commit([], [{ key: 'gates/a', value: Buffer.from('{"kind":"gate"}') }]);
  await store.commit([], [{ key: 'gates/b', value: Buffer.from('not JSON') }]);
  await store.commit([], [{ key: 'gates/c', value: Buffer.from('{"kind":"lease"}') }]);
  const { faults, ...counts } = await checkStore(store);
  expect(counts).toEqual({ entries: 3, encrypted: 0, revision: 3, history: 3, changes: 3 });
  expect(faults).toEqual([expect.stringContaining('gates/b is not JSON'), 'gates/c holds a record of kind "lease"']);
});

it('finds nothing wrong with a store that is used while it is checked', async () => {
  const memory = createMemoryStore();
  const value = Buffer.from('{"kind":"gate"}');
  for (let from = 0; from < 6_000; from += 1_000)
    await memory.commit(
      [],
      Array.from({ length: 1_000 }, (_, i) => ({ key: `gates/${String(from + i).padStart(5, '0')}`, value })),
    );
  let pages = 0;
  const used: Store = {
    get: (key) => memory.get(key),
    commit: (conditions, writes) => memory.commit(conditions, writes),
    watch: (prefix, after, signal) => memory.watch(prefix, after, signal),
    compact: (before) => memory.compact(before),
    close: () => Promise.resolve(),
    async list(prefix, options) {
      const page = await memory.list(prefix, options);
      if (pages++ === 0) {
        await memory.commit([], [{ key: 'gates/05999', value: null }]);
        await memory.commit([], [{ key: 'gates/00001', value }]);
      }
      return page;
    },
  };
  expect(await checkStore(used)).toMatchObject({ faults: [], entries: 5_999 });
});
