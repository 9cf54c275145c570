import { expect, it } from 'vitest';
import { ApiError } from '../api/errors.ts';
import { system } from '../base/system.ts';
import { restoredRecord } from '../core/operations/restored-record.ts';
import { decodeRecord } from '../core/state/codec.ts';
import { keys } from '../core/state/keys.ts';
import { createMemoryStore } from '../store/memory/memory-store.ts';
import { type Store, StoreError } from '../store/store.ts';
import { type Backup, readBackup, writeBackup } from './backup.ts';
import { checkStore } from './check-store.ts';
import { closeStore, refill, type Refill } from './refill.ts';
import { startTestServer, testRegistration } from './testing.ts';

const backupOf = (store: Store): Promise<Backup> => readBackup(writeBackup(store, { version: 'test', nowMs: 1 }));
const restoring = ({ entries, revision }: Backup, changes: Partial<Refill> = {}): Refill => ({
  entries,
  convert: (record) => restoredRecord(record, { nowMs: 1_000 }),
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

it('closes a store that is moved away, and can open it again', async () => {
  const server = await startTestServer();
  const reopen = await closeStore(server.store, { why: 'it has been moved', nowMs: 5 });
  await system.turn();
  await expect(server.client.create('image', image)).rejects.toThrow('it has been moved');
  await expect(closeStore(server.store, { why: 'again', nowMs: 6 })).rejects.toThrow('is closed: it has been moved');
  await reopen();
  await system.turn();
  await server.client.create('image', image);
  await server.close();
});

it('finds what is wrong with a store', async () => {
  const store = createMemoryStore();
  await store.commit([], [{ key: 'gates/a', value: Buffer.from('{"kind":"gate"}') }]);
  await store.commit([], [{ key: 'gates/b', value: Buffer.from('not JSON') }]);
  await store.commit([], [{ key: 'gates/c', value: Buffer.from('{"kind":"lease"}') }]);
  const { faults, ...counts } = await checkStore(store);
  expect(counts).toEqual({ entries: 3, revision: 3, history: 3, changes: 3 });
  expect(faults).toEqual([expect.stringContaining('gates/b is not JSON'), 'gates/c holds a record of kind "lease"']);
});
