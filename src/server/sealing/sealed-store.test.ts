import { describe, expect, it } from 'vitest';
import { randomSecret } from '../../base/system.ts';
import { decodeRecord, encodeRecord } from '../../core/state/codec.ts';
import { keys } from '../../core/state/keys.ts';
import type { AnyRecord, Cluster } from '../../core/state/records.ts';
import { testInstance } from '../../core/testing.ts';
import { createMemoryStore } from '../../store/memory/memory-store.ts';
import type { Store } from '../../store/store.ts';
import { parseMasterKeys } from './master-keys.ts';
import { MissingMasterKey, openSealing, type Sealing } from './open-sealing.ts';
import { newMasterKey } from './read-master-keys.ts';

const planted = 'planted-8f1c2d';
const masterKey = newMasterKey();
const open = (stored: Store, text = masterKey): Promise<Sealing> =>
  openSealing(stored, { masterKeys: parseMasterKeys(text), nowMs: 1, randomSecret });

function withUserData(name: string, userData = planted): AnyRecord {
  const instance = testInstance(name);
  return { ...instance, spec: { ...instance.spec, userData } };
}

async function put(store: Store, ...records: readonly (readonly [string, AnyRecord | null])[]): Promise<void> {
  const writes = records.map(([key, value]) => ({ key, value: value && encodeRecord(value) }));
  expect((await store.commit([], writes)).ok).toBe(true);
}

async function textIn(store: Store): Promise<string> {
  const parts = (await store.list('')).entries.map(({ key, value }) => `${key} ${Buffer.from(value).toString()}`);
  const over = new AbortController();
  for await (const batch of store.watch('', 0, over.signal)) {
    parts.push(...batch.map(({ value }) => (value ? Buffer.from(value).toString() : '')));
    break;
  }
  over.abort();
  return parts.join('\n');
}

const a = keys.instance('default', 'a');
const b = keys.instance('default', 'b');
const cluster: Cluster = {
  kind: 'cluster',
  recordsVersion: 2,
  epoch: 'epoch_1',
  createdAtMs: 1,
  tokenSecret: planted,
  operatorToken: 'operator',
};

describe('an encrypted store', () => {
  it('holds no secret in plain text, and gives back what was written: get, list, watch', async () => {
    const stored = createMemoryStore();
    const { store } = await open(stored);
    await put(store, [a, withUserData('a')], [keys.cluster, cluster], [b, testInstance('b')]);
    expect(await textIn(stored)).not.toContain(planted);
    expect(decodeRecord(a, (await store.get(a))?.value ?? Buffer.of())).toEqual(withUserData('a'));
    expect(decodeRecord(keys.cluster, (await store.get(keys.cluster))?.value ?? Buffer.of())).toEqual(cluster);
    expect(await textIn(store)).toContain(planted);
    expect(store.plain.size).toBe(0);
  });

  it('leaves records without secrets as they are, byte for byte', async () => {
    const stored = createMemoryStore();
    const { store } = await open(stored);
    await put(store, [b, testInstance('b')]);
    expect(Buffer.from((await stored.get(b))?.value ?? [])).toEqual(Buffer.from(encodeRecord(testInstance('b'))));
  });

  it('keeps the rest of the record of the store readable without a key', async () => {
    const stored = createMemoryStore();
    const { store } = await open(stored);
    await put(store, [keys.cluster, cluster]);
    const found = decodeRecord(keys.cluster, (await stored.get(keys.cluster))?.value ?? Buffer.of());
    expect(found).toMatchObject({ epoch: 'epoch_1', recordsVersion: 2 });
    expect(found).not.toMatchObject({ tokenSecret: planted });
  });

  it('names the records in plain text that it has read, until they are written again or deleted', async () => {
    const stored = createMemoryStore();
    await put(
      stored,
      [a, withUserData('a')],
      [b, withUserData('b')],
      [keys.instance('default', 'c'), testInstance('c')],
    );
    const { store } = await open(stored);
    await store.list('');
    expect([...store.plain]).toEqual([a, b]);
    const over = new AbortController();
    const after = (await store.list('')).revision;
    await put(store, [a, withUserData('a')], [b, null]);
    for await (const _ of store.watch('', after, over.signal)) break;
    over.abort();
    expect([...store.plain]).toEqual([]);
  });

  it('reads records under a data key that another server has made since', async () => {
    const stored = createMemoryStore();
    const [first, second] = await Promise.all([open(stored), open(stored)]);
    await put(first.store, [a, withUserData('a')]);
    await put(second.store, [b, withUserData('b')]);
    expect(await textIn(first.store)).toContain(planted);
    expect((await second.store.list('instances/')).entries).toHaveLength(2);
    expect((await stored.list('data-keys/')).entries.length).toBeLessThanOrEqual(2);
  });

  it.each([
    [
      'moved to another name',
      async (stored: Store) => stored.commit([], [{ key: b, value: (await stored.get(a))?.value ?? null }]),
      b,
    ],
    [
      'moved to another project',
      async (stored: Store) =>
        stored.commit([], [{ key: 'instances/other/a', value: (await stored.get(a))?.value ?? null }]),
      'instances/other/a',
    ],
    [
      'moved to another kind',
      async (stored: Store) =>
        stored.commit([], [{ key: 'jobs/default/a', value: (await stored.get(a))?.value ?? null }]),
      'jobs/default/a',
    ],
    [
      'cut off',
      async (stored: Store) =>
        stored.commit([], [{ key: a, value: Buffer.from((await stored.get(a))?.value ?? []).subarray(0, -30) }]),
      a,
    ],
  ])('refuses a record that was %s, as damage', async (_, attack, key) => {
    const stored = createMemoryStore();
    const { store } = await open(stored);
    await put(store, [a, withUserData('a')]);
    await attack(stored);
    await expect(store.get(key)).rejects.toMatchObject({ code: 'Corrupt' });
  });

  it('refuses another master key, and names the one that is needed', async () => {
    const stored = createMemoryStore();
    await open(stored);
    const needed = parseMasterKeys(masterKey).current.id;
    await expect(open(stored, newMasterKey())).rejects.toThrow(MissingMasterKey);
    await expect(open(stored, newMasterKey())).rejects.toThrow(`under master key ${needed}`);
  });

  it('is refused by a reader without a key, and by older versions', async () => {
    const stored = createMemoryStore();
    await put((await open(stored)).store, [a, withUserData('a')]);
    const value = (await stored.get(a))?.value ?? Buffer.of();
    expect(() => decodeRecord(a, value)).toThrow('is encrypted');
    expect(JSON.parse(Buffer.from(value).toString())).toMatchObject({ kind: 'sealed', schemaVersion: 2 });
  });
});
