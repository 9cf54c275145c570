import { afterEach, expect, it } from 'vitest';
import { silentLogger } from '../../base/log.ts';
import { createManualClock } from '../../base/manual-clock.ts';
import { seededPrng } from '../../base/prng.ts';
import { randomSecret, system } from '../../base/system.ts';
import { encodeRecord } from '../../core/state/codec.ts';
import { defaultPolicy } from '../../core/state/context.ts';
import { keys } from '../../core/state/keys.ts';
import { testInstance } from '../../core/testing.ts';
import { createMemoryStore } from '../../store/memory/memory-store.ts';
import type { Store } from '../../store/store.ts';
import { MemoryRunStorage } from '../runs/memory-run-storage.ts';
import { defaultRunLimits, RunFiles } from '../runs/run-files.ts';
import { type Server, startControlPlane } from '../server.ts';
import { type MasterKeys, parseMasterKeys } from './master-keys.ts';
import { openSealing } from './open-sealing.ts';
import { dataKeysIn } from '../storage/data-key-records.ts';
import { newMasterKey } from './read-master-keys.ts';

const planted = 'planted-8f1c2d';
const [old, next] = [newMasterKey(), newMasterKey()];
const keysOf = (...texts: string[]): MasterKeys => parseMasterKeys(texts.join('\n'));
const key = (name: string): string => keys.instance('default', name);
const clock = createManualClock();
const started: Server[] = [];
afterEach(() => Promise.all(started.splice(0).map((server) => server.stop())));

async function start(stored: Store, read: () => MasterKeys, name = 'one'): Promise<Server> {
  const sealing = await openSealing(stored, { masterKeys: read(), nowMs: clock.nowMs(), randomSecret });
  const server = await startControlPlane({
    store: sealing.store,
    sealing: { ...sealing, source: { name: 'test', read: async () => read() } },
    clock,
    idleMs: () => clock.monotonicMs(),
    prng: seededPrng(1, name),
    log: silentLogger,
    policy: defaultPolicy,
    links: { get: () => Promise.reject(new Error('no line')), open: () => Promise.reject(new Error('no line')) },
    runFiles: new RunFiles({ storage: new MemoryRunStorage(), limits: defaultRunLimits, clock }),
    version: 'test',
    name,
    leaseMs: 6_000,
    secrets: { tokenSecret: planted, operatorToken: 'operator' },
  });
  started.push(server);
  return server;
}

async function pass(ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 250) {
    clock.advance(250);
    for (let turn = 0; turn < 5; turn++) await system.turn();
  }
}

async function putPlain(stored: Store, ...names: string[]): Promise<void> {
  const writes = names.map((name) => {
    const ended = testInstance(name, { userData: planted, powerState: 'stopped' }, { phase: 'Stopped' }); // no controller writes it
    return { key: key(name), value: encodeRecord(ended) };
  });
  await stored.commit([], writes);
}

async function plainIn(stored: Store): Promise<string[]> {
  const { entries } = await stored.list('');
  return entries.filter(({ value }) => Buffer.from(value).includes(planted)).map((entry) => entry.key);
}

it('encrypts records that were stored in plain text, a bounded number each second', async () => {
  const stored = createMemoryStore();
  const names = Array.from({ length: 120 }, (_, i) => `a${i}`);
  await putPlain(stored, ...names);
  await start(stored, () => keysOf(old));
  await pass(250);
  expect(await plainIn(stored)).toHaveLength(120);
  await pass(1_500);
  expect((await plainIn(stored)).length).toBeGreaterThan(0);
  await pass(5_000);
  expect(await plainIn(stored)).toEqual([]);
});

it('encrypts what a server without the key writes meanwhile', async () => {
  const stored = createMemoryStore();
  await start(stored, () => keysOf(old));
  await pass(1_000);
  await putPlain(stored, 'late');
  expect(await plainIn(stored)).toEqual([key('late')]);
  await pass(5_000);
  expect(await plainIn(stored)).toEqual([]);
});

it('rewrites data keys under a new master key without a restart', async () => {
  const stored = createMemoryStore();
  let file = keysOf(old);
  await start(stored, () => file);
  await putPlain(stored, 'a');
  await pass(5_000);
  file = keysOf(next, old);
  await pass(10_000);
  expect(await dataKeysIn(stored)).toEqual([expect.objectContaining({ masterKey: file.current.id })]);
  const { store } = await openSealing(stored, { masterKeys: keysOf(next), nowMs: 1, randomSecret });
  expect(Buffer.from((await store.get(key('a')))?.value ?? []).toString()).toContain(planted);
});

/** Each row: what a crash leaves of a rotation, and which key files can be used then. */
it.each([
  { left: 'before anything', rewritten: 0, usable: [[old], [old, next], [next, old]], refused: [[next]] },
  {
    left: 'between two data keys',
    rewritten: 1,
    usable: [
      [old, next],
      [next, old],
    ],
    refused: [[old], [next]],
  },
  { left: 'after all data keys', rewritten: 2, usable: [[old, next], [next, old], [next]], refused: [[old]] },
])('loses nothing when a rotation stops $left', async ({ rewritten, usable, refused }) => {
  const stored = createMemoryStore();
  const { dataKeys, store } = await openSealing(stored, { masterKeys: keysOf(old), nowMs: 1, randomSecret });
  const second = dataKeys.make(2);
  await stored.commit([], [{ key: keys.dataKey(second.id), value: encodeRecord(second) }]);
  await putPlain(store, 'a');
  dataKeys.learn(second);
  await putPlain(store, 'b');
  dataKeys.useMasterKeys(keysOf(next, old));
  for (const record of (await dataKeysIn(stored)).slice(0, rewritten)) {
    const value = dataKeys.rewrapped(record);
    if (value) await stored.commit([], [{ key: keys.dataKey(record.id), value: encodeRecord(value) }]);
  }
  const open = (texts: readonly string[]) =>
    openSealing(stored, { masterKeys: keysOf(...texts), nowMs: 3, randomSecret });
  for (const texts of usable) expect(await plainIn((await open(texts)).store)).toEqual([key('a'), key('b')]);
  for (const texts of refused) await expect(open(texts)).rejects.toThrow('records are encrypted under master key');
});
