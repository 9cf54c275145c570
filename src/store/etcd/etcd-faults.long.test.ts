// What the etcd store does when members are killed, stopped, full, locked, or replaced as leaders, and when its own process dies between
// any two of its writes. All real: real servers, real signals.

import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { type Logger, silentLogger } from '../../base/log.ts';
import { seededPrng } from '../../base/prng.ts';
import { systemClock, systemPrng } from '../../base/system.ts';
import {
  Compacted,
  type Entry,
  type Key,
  type Revision,
  type Store,
  StoreError,
  type WatchEvent,
  type Write,
} from '../store.ts';
import { type Etcd, EtcdClient } from './etcd-client.ts';
import { parseEtcdUrl } from './etcd-url.ts';
import { openEtcdStore, openOn } from './etcd-store.ts';
import { freePort } from '../../base/test-ports.ts';
import { startEtcd, type TestEtcd, type TestMember } from './test-etcd.ts';

let undo: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const step of undo.reverse()) await step();
  undo = [];
});

async function start(options: Parameters<typeof startEtcd>[0] = {}): Promise<TestEtcd> {
  const etcd = await startEtcd(options);
  undo.push(() => etcd.stop());
  return etcd;
}

async function open(rest: string, patienceMs?: number): Promise<Store> {
  const store = await openEtcdStore({ rest, ...(patienceMs !== undefined && { patienceMs }) });
  undo.push(() => store.close());
  return store;
}

describe('the only member', () => {
  it('is killed and started again, three times: no commit that was answered is lost, none is doubled', async () => {
    const etcd = await start();
    const rest = etcd.rest();
    const writing = writeUntilStopped([await open(rest), await open(rest)]);
    for (let kill = 0; kill < 3; kill++) {
      await writing.more(150);
      await member(etcd).kill();
      member(etcd).start();
      await member(etcd).ready();
    }
    await writing.more(150);
    await writing.stop();
    await expectEveryAnswerOnce(await open(rest), writing);
    expect(writing.failures).toEqual([]); // it was away for a moment only
  });

  it('stays away: who commits is told that nobody knows, who reads that it is away; it comes back and all goes on', async () => {
    const etcd = await start();
    const rest = etcd.rest();
    const store = await open(rest, 1_000);
    await put(store, 'a', 'before');
    await member(etcd).freeze(); // what is sent now may be carried out later
    await expect(put(store, 'a', 'unsure')).rejects.toMatchObject({ code: 'Unavailable', outcome: 'unknown' });
    await expect(store.get('a')).rejects.toMatchObject({ code: 'Unavailable', outcome: 'none' });
    await member(etcd).kill();
    await expect(put(store, 'b', 'surely not')).rejects.toMatchObject({ code: 'Unavailable' });
    member(etcd).start();
    await member(etcd).ready();
    await put(store, 'c', 'after');
    expect((await store.list('')).entries.map(({ key }) => key)).toEqual(['a', 'c']);
  });

  it('tells watchers that it is away, and serves them from where they were', async () => {
    const etcd = await start();
    const store = await open(etcd.rest(), 1_000);
    await put(store, 'a', '1');
    const watcher = store.watch('', 0, new AbortController().signal)[Symbol.asyncIterator]();
    expect((await watcher.next()).value).toMatchObject([{ key: 'a', revision: 1 }]);
    const lost = watcher.next();
    lost.catch(() => {}); // looked at below
    await member(etcd).kill();
    await expect(lost).rejects.toMatchObject({ code: 'Unavailable' });
    member(etcd).start();
    await member(etcd).ready();
    await put(store, 'a', '2');
    expect(await eventsThrough(store, 1, 2)).toMatchObject([{ key: 'a', revision: 2 }]);
  });

  it('stays away: watchers are told within seconds, however long requests are tried', async () => {
    const etcd = await start();
    const store = await open(etcd.rest(), 600_000);
    await put(store, 'a', '1');
    const watcher = store.watch('', 1, new AbortController().signal)[Symbol.asyncIterator]();
    const lost = watcher.next();
    await member(etcd).kill();
    const reading = store.get('a');
    await expect(lost).rejects.toMatchObject({ code: 'Unavailable' });
    member(etcd).start();
    expect(await reading).toMatchObject({ revision: 1 });
  });

  it('is full: commits are told what to do, reads go on, and after that so do commits', async () => {
    const etcd = await start({ words: ['--quota-backend-bytes', String(16 * 1024 * 1024)] });
    const store = await open(etcd.rest());
    await put(store, 'a', 'before');
    const junk = { key: base64('junk'), value: base64('x'.repeat(1024 * 1024)) };
    await expect(forever(() => member(etcd).ask('kv/put', junk))).rejects.toThrow('space exceeded');
    const full = put(store, 'a', 'more');
    await expect(full).rejects.toMatchObject({ code: 'Full', outcome: 'none' });
    await expect(full).rejects.toThrow('etcdctl defrag');
    expect(await store.get('a')).toMatchObject({ revision: 1 });
    expect((await store.list('')).revision).toBe(1);

    const { header } = await member(etcd).askAny('kv/deleterange', { key: base64('junk') });
    await member(etcd).ask('kv/compaction', { revision: header.revision, physical: true });
    await member(etcd).ask('maintenance/defragment', {});
    const { member_id } = (await statusOf(member(etcd))).header;
    await member(etcd).ask('maintenance/alarm', { action: 'DEACTIVATE', memberID: member_id, alarm: 'NOSPACE' });
    expect(await put(store, 'a', 'after')).toBe(2);
  });
});

describe('three members', () => {
  it.each<[string, (etcd: TestEtcd, step: () => Promise<void>) => Promise<void>]>([
    [
      'the leader is killed',
      async (etcd, step) => {
        const { leader } = await roles(etcd);
        await leader.kill();
        await step();
        leader.start();
        await leader.ready();
      },
    ],
    [
      'the leader gives its role away',
      async (etcd, step) => {
        const { leader, others } = await roles(etcd);
        const target = await statusOf(others[0] ?? leader);
        await leader.ask('maintenance/transfer-leadership', { targetID: target.header.member_id });
        await step();
      },
    ],
    [
      'the leader is stopped, and goes on',
      async (etcd, step) => {
        const { leader } = await roles(etcd);
        await leader.freeze();
        await step();
        leader.signal('SIGCONT');
        await leader.ready();
      },
    ],
  ])('%s under writers: every answer is there once, and revisions have no gap', async (_, fault) => {
    const etcd = await start({ size: 3 });
    const rest = etcd.rest();
    const writing = writeUntilStopped([await open(rest), await open(rest)]);
    await writing.more(100);
    for (let round = 0; round < 2; round++) {
      await fault(etcd, () => writing.more(100));
      await writing.more(100);
    }
    await writing.stop();
    await expectEveryAnswerOnce(await open(rest), writing);
  });
});

describe('who may come in', () => {
  it('needs the right password, rights on the prefix, and is let in again after a restart', async () => {
    const etcd = await start();
    const one = member(etcd);
    await one.ask('auth/user/add', { name: 'root', password: 'root secret' });
    await one.ask('auth/role/add', { name: 'root' });
    await one.ask('auth/user/grant', { user: 'root', role: 'root' });
    await one.ask('auth/user/add', { name: 'berth', password: 'good secret' });
    await one.ask('auth/user/add', { name: 'guest', password: 'guest secret' });
    await one.ask('auth/role/add', { name: 'berth' });
    const range = { key: base64('mine/'), range_end: base64('mine0'), permType: 'READWRITE' };
    await one.ask('auth/role/grant', { name: 'berth', perm: range });
    await one.ask('auth/user/grant', { user: 'berth', role: 'berth' });
    await one.ask('auth/enable', {});
    const login = (user: string, password: string): string =>
      `${etcd.rest('mine')}?${new URLSearchParams({ user, password }).toString()}`;

    await expectDenied(login('berth', 'bad secret'), 'login of user "berth" failed');
    await expectDenied(login('guest', 'guest secret'), 'permission denied');
    await expectDenied(etcd.rest('mine'), 'user name is empty');
    const store = await open(login('berth', 'good secret'));
    await put(store, 'a', '1');
    await store.compact(2);
    await one.kill(); // with it, the login tokens in its memory are lost
    one.start();
    await one.open();
    expect(await put(store, 'a', '2')).toBe(2);
  });

  it.skipIf(spawnSync('openssl', ['version']).error)(
    'shows its certificate over TLS, and trusts only whom it is told to (needs openssl)',
    async () => {
      const folder = mkdtempSync(join(tmpdir(), 'berth-tls-'));
      undo.push(async () => rmSync(folder, { recursive: true }));
      makeCertificates(folder);
      const file = (name: string): string => join(folder, name);
      const words = ['--cert-file', file('peer.pem'), '--key-file', file('peer.key')];
      const etcd = await start({
        scheme: 'https',
        words: [...words, '--trusted-ca-file', file('ca.pem'), '--client-cert-auth'],
      });
      const rest = etcd.rest();
      const own = `&cert=${file('peer.pem')}&key=${file('peer.key')}`;
      const warnings: string[] = [];
      const warned = ({ message }: Error): void => void warnings.push(message);
      process.on('warning', warned);
      undo.push(async () => void process.off('warning', warned));
      const store = await openWhenThere(`${rest}?ca=${file('ca.pem')}${own}`);
      expect(await put(store, 'a', '1')).toBe(1);
      expect(warnings).toEqual([]); // of an address in the handshake
      await expectDenied(`${rest}?tls=true${own}`, 'certificate');
      await expect(openEtcdStore({ rest: `${rest}?ca=${file('ca.pem')}` })).rejects.toBeInstanceOf(StoreError);
    },
  );

  it('finds no etcd where none listens, and says what to see to', async () => {
    const port = await freePort();
    const opening = openEtcdStore({ rest: `//127.0.0.1:${port}/berth?user=berth&password=secret` });
    await expect(opening).rejects.toMatchObject({ code: 'Unavailable', outcome: 'none' });
    await expect(opening).rejects.toThrow(`etcd://127.0.0.1:${port}/berth`);
    await expect(opening).rejects.not.toThrow('secret');
  });

  it('finds an etcd without TLS where the URL wants it, and says so', async () => {
    const etcd = await start();
    const opening = openEtcdStore({ rest: `${etcd.rest()}?tls=true` });
    await expect(opening).rejects.toMatchObject({ code: 'Unavailable', outcome: 'none' });
    await expect(opening).rejects.toThrow('if it speaks no TLS, the store URL must be without ?tls=');
    await expect(opening).rejects.not.toThrow('Resolution note');
  });

  it('is warned when it has a password and everybody is let in', async () => {
    const etcd = await start();
    const warned: string[] = [];
    const log: Logger = { ...silentLogger, warn: (message) => void warned.push(message), with: () => log };
    const store = await openEtcdStore({ rest: `${etcd.rest()}?user=root&password=secret`, log });
    undo.push(() => store.close());
    await put(store, 'a', '1');
    await (await openEtcdStore({ rest: etcd.rest(), log })).close();
    expect(warned).toEqual([expect.stringContaining('authentication is off')]);
  });

  it('is refused a store that a newer version has written, also when it is open already', async () => {
    const etcd = await start();
    const rest = etcd.rest('newer');
    const store = await open(rest);
    await put(store, 'a', '1');
    const head = { key: base64('newer/head'), value: base64('{"format":2,"revision":1}') };
    await member(etcd).ask('kv/put', head);
    const refused = { code: 'Invalid', message: expect.stringContaining('start that one') };
    await expect(put(store, 'a', '2')).rejects.toMatchObject(refused);
    await expect(store.get('a')).rejects.toMatchObject(refused);
    await expect(openEtcdStore({ rest })).rejects.toMatchObject(refused);
  });
});

describe('several processes that write', () => {
  it('all have their turn, also beside one that never pauses', async () => {
    const etcd = await start();
    const rest = etcd.rest();
    const other = await open(rest);
    const busy = runScript(`
      import { openEtcdStore } from ${JSON.stringify(storeModule)};
      const store = await openEtcdStore({ rest: ${JSON.stringify(rest)} });
      for (let i = 0; ; i++) await store.commit([], [{ key: 'busy/' + (i % 10), value: new Uint8Array(500) }]);
    `);
    undo.push(async () => void busy.kill('SIGKILL'));
    for await (const _ of other.watch('busy/', 0, new AbortController().signal)) break; // it has begun
    for (let i = 0; i < 50; i++) await put(other, `other/${i}`, 'x');
    expect((await other.list('other/')).entries).toHaveLength(50);
    expect(busy.exitCode).toBeNull();
  });
});

describe('what is stored', () => {
  it('is never answered when it is damaged', async () => {
    const etcd = await start();
    const rest = etcd.rest('damaged');
    const store = await open(rest);
    await put(store, 'a', '1');
    const record = { key: base64('damaged/log/0000000000000001') };
    const { kvs } = await member(etcd).askAny('kv/range', record);
    const bytes = Buffer.from(kvs[0].value, 'base64');
    bytes.writeUInt8(bytes.readUInt8(bytes.byteLength - 1) ^ 1, bytes.byteLength - 1);
    await member(etcd).ask('kv/put', { ...record, value: bytes.toString('base64') });
    await expect(openEtcdStore({ rest })).rejects.toMatchObject({ code: 'Corrupt' });
  });

  it('is noticed to be older than it was, as after a restore', async () => {
    const etcd = await start();
    const rest = etcd.rest('older');
    const store = await open(rest);
    await put(store, 'a', '1');
    await put(store, 'a', '2');
    await member(etcd).ask('kv/put', { key: base64('older/head'), value: base64('{"format":1,"revision":1}') });
    await expect(put(store, 'a', '3')).rejects.toMatchObject({
      code: 'Corrupt',
      message: expect.stringContaining('gone back'),
    });
    await expect(store.get('a')).rejects.toMatchObject({ code: 'Corrupt' });
  });

  it('tells a slow watcher in another process that it was too slow, and keeps what is left', async () => {
    const etcd = await start();
    const rest = etcd.rest();
    const [one, other] = [await open(rest), await open(rest)];
    for (let i = 0; i < 700; i++) await put(one, `k/${i % 50}`, `${i}`);
    const slow = other.watch('', 1, new AbortController().signal)[Symbol.asyncIterator]();
    await slow.next();
    for (let i = 0; i < 700; i++) await put(one, `k/${i % 50}`, `${i}`);
    for (const before of [600, 900, 1300]) await one.compact(before); // the last two let etcd forget its own history, too
    const again = await open(rest);
    await expect(eventsThrough(again, 1298, 1400)).rejects.toThrow(Compacted);
    expect(await eventsThrough(again, 1299, 1400)).toHaveLength(101);
    expect(await again.list('')).toEqual(await other.list(''));
    expect((await again.list('')).entries).toHaveLength(50);
  });

  it('is caught up with by a process that has slept through a compaction', async () => {
    const etcd = await start();
    const rest = etcd.rest();
    const awake = await open(rest);
    const { store: asleep, gate } = await openGated(etcd, rest);
    await put(asleep, 'seen', '1');
    gate.close();
    for (let i = 0; i < 300; i++) await put(awake, i % 2 === 0 ? 'seen' : `k/${i}`, `${i}`);
    await awake.compact(290);
    gate.open();
    const stale = await asleep.commit([{ key: 'seen', ifRevision: 1 }], [{ key: 'seen', value: bytes('x') }]);
    expect(stale).toEqual({ ok: false, key: 'seen' });
    const current = await asleep.commit([{ key: 'seen', ifRevision: 300 }], [{ key: 'seen', value: bytes('x') }]);
    expect(current).toEqual({ ok: true, revision: 302 });
    expect(await asleep.list('')).toEqual(await awake.list(''));
  });

  it('may be as large as a commit may be, in one value or many; parts go when nobody needs them', async () => {
    const etcd = await start();
    const rest = etcd.rest('large');
    const store = await open(rest);
    const large = new Uint8Array(20 * 1024 * 1024).map((_, i) => (i * 31) % 251);
    const many = Array.from({ length: 3_000 }, (_, i) => ({ key: `many/${i}`, value: bytes(`${i}`.repeat(1_000)) }));
    await store.commit([], [{ key: 'large', value: large }, ...many]);
    await put(store, 'small', 'x');
    await store.compact(3);
    await store.compact(3);
    const again = await open(rest);
    // Not toEqual, which takes seconds for this many bytes.
    const found = await again.get('large');
    expect(Buffer.compare(found?.value ?? bytes(''), large)).toBe(0);
    const { entries } = await again.list('');
    expect(entries).toHaveLength(3_002);
    expect(Buffer.compare(entries.find(({ key }) => key === 'large')?.value ?? bytes(''), large)).toBe(0);
    expect(await partsLeft(etcd, 'large')).toBeGreaterThan(20);
    await store.commit([], [{ key: 'large', value: null }]);
    await store.compact(4);
    expect(await partsLeft(etcd, 'large')).toBe(0);
    expect((await again.list('')).entries).toHaveLength(3_001);
  });
});

describe('a process that dies between two of its writes', () => {
  it.each([
    ['before etcd has done', false],
    ['after etcd has done', true],
  ])('leaves a store that is whole, wherever that is, %s the last', async (_, done) => {
    const etcd = await start();
    let steps = 0;
    for (let cut = 1; ; cut++) {
      const rest = etcd.rest(`cut-${done}-${cut}`);
      const { store, gate } = await openGated(etcd, rest);
      gate.closeAfter(cut, done);
      const truth = [new Map<Key, string>()];
      const finished = await playHistory(store, truth).then(
        () => true,
        (error: unknown) => {
          if (!(error instanceof StoreError)) throw error;
          return false;
        },
      );
      await store.close();

      const after = await open(rest);
      const { entries, revision } = await after.list('');
      expect([truth.length - 1, truth.length - 2]).toContain(revision);
      expect(digestOf(entries)).toEqual(truth[revision]);
      // What was left behind does no harm, and is deleted.
      await put(after, 'after', 'x');
      await put(after, 'after', 'y');
      await after.compact(revision + 2);
      await after.compact(revision + 3);
      const wanted = new Map(truth[revision]).set('after', digest(bytes('y')));
      expect(digestOf((await after.list('')).entries)).toEqual(wanted);
      expect(digestOf((await (await open(rest)).list('')).entries)).toEqual(wanted);
      for (const step of undo.splice(1).reverse()) await step();
      if (finished) break;
      steps++;
    }
    expect(steps).toBeGreaterThan(20);
  });

  it('is told whether its commit was carried out, when the answer was lost', async () => {
    const etcd = await start();
    const rest = etcd.rest();
    const other = await open(rest);
    const { store, gate } = await openGated(etcd, rest);
    const prng = seededPrng(7);
    const expected: string[] = [];
    for (let i = 0; i < 60; i++) {
      gate.loseNext(prng.chance(1, 2) ? 'question' : 'answer');
      const mine = put(store, `mine/${i}`, 'x');
      if (prng.chance(1, 2)) await put(other, `others/${i}`, 'x');
      expected[(await mine) - 1] = `mine/${i}`;
    }
    const events = await eventsThrough(store, 0, (await store.list('')).revision);
    const mine = events.filter(({ key }) => key.startsWith('mine/'));
    expect(mine).toHaveLength(60);
    for (const { key, revision } of mine) expect(expected[revision - 1]).toBe(key);
  });
});

it('lets its process end when it is closed', async () => {
  const etcd = await start();
  const child = runScript(`
    import { openEtcdStore } from ${JSON.stringify(storeModule)};
    const store = await openEtcdStore({ rest: ${JSON.stringify(etcd.rest())} });
    await store.commit([], [{ key: 'a', value: new Uint8Array(1) }]);
    const watch = store.watch('', 0, new AbortController().signal)[Symbol.asyncIterator]();
    await watch.next();
    await store.close();
  `);
  expect(await once(child, 'exit')).toEqual([0, null]);
});

const storeModule = new URL('./etcd-store.ts', import.meta.url).href;

/** In a process of its own. */
function runScript(script: string): ChildProcess {
  return spawn('setpriv', ['--pdeathsig', 'KILL', process.execPath, '--input-type=module', '-e', script], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
}

/**
 * Commits of every kind: one key, many, large ones in parts, deletes; entries follow, and history is compacted.
 * `truth[r]` is revision r.
 */
async function playHistory(store: Store, truth: Map<Key, string>[]): Promise<void> {
  const commit = async (writes: readonly Write[]): Promise<void> => {
    const next = new Map(truth.at(-1));
    for (const { key, value } of writes) {
      if (value === null) next.delete(key);
      else next.set(key, digest(value));
    }
    truth.push(next);
    expect(await store.commit([], writes)).toEqual({ ok: true, revision: truth.length - 1 });
  };
  const large = (fill: number): Uint8Array => new Uint8Array(1_500_000).fill(fill);
  await commit([{ key: 'large', value: large(1) }, ...keys(0, 40, 'a')]);
  await commit([{ key: 'k/3', value: null }, { key: 'other', value: large(2) }, ...keys(100, 40, 'b')]);
  await store.compact(2);
  for (let i = 0; i < 5; i++) await commit(keys(i * 20, 40, `c${i}`));
  await commit([{ key: 'large', value: null }, ...keys(400, 300, 'd')]);
  await store.compact(8);
  await commit([...keys(0, 10, 'e'), { key: 'other', value: bytes('small') }]);
  await store.compact(10);
  // At the end nothing is under way.
  truth.push(new Map(truth.at(-1)).set('last', digest(bytes('x'))));
  await put(store, 'last', 'x');
}

function keys(first: number, count: number, text: string): Write[] {
  return Array.from({ length: count }, (_, i) => ({ key: `k/${first + i}`, value: bytes(text) }));
}

function digestOf(entries: readonly Entry[]): Map<Key, string> {
  return new Map(entries.map(({ key, value }) => [key, digest(value)]));
}

function digest(value: Uint8Array): string {
  return `${value.byteLength} of ${value[0]}: ${Buffer.from(value.subarray(0, 16)).toString('hex')}`;
}

interface Gate {
  open(): void;
  /** Nothing passes any more, as for a suspended process. */
  close(): void;
  /** The process dies at its next write number `count`: that one is carried out, or not. */
  closeAfter(count: number, done: boolean): void;
  /** The next commit, or its answer, is lost, and sent again. */
  loseNext(what: 'question' | 'answer'): void;
}

/** A store whose way to etcd can be cut between any two requests. */
async function openGated(etcd: TestEtcd, rest: string): Promise<{ store: Store; gate: Gate }> {
  const address = parseEtcdUrl(rest);
  const prng = systemPrng();
  const client = new EtcdClient({ address, clock: systemClock, prng, patienceMs: 5_000 });
  let left = Infinity;
  let doneAtLast = false;
  let lose: 'question' | 'answer' | undefined;
  let shut = Promise.withResolvers<void>();
  shut.resolve();
  const cut = (): StoreError => new StoreError('Unavailable', 'the way to etcd is cut', { outcome: 'unknown' });
  const gated: Etcd = {
    name: client.name,
    async call(name, request, attempted, limits) {
      await shut.promise;
      if (left === 0) throw cut();
      if (name === 'txn' || name === 'put' || name === 'deleteRange' || name === 'compact') {
        left--;
        if (left === 0) {
          if (doneAtLast) await client.call(name, request, attempted, limits);
          throw cut();
        }
      }
      if (limits?.onDoubt && lose) {
        // As EtcdClient does it: the question or its answer gets lost, then it is sent again as it is.
        if (lose === 'answer') await client.call(name, request, attempted, limits);
        lose = undefined;
        limits.onDoubt();
        await etcd.members[0]?.ready(); // others have their turn
      }
      return client.call(name, request, attempted, limits);
    },
    watch: (key, on) => client.watch(key, on),
    close: () => client.close(),
  };
  const store = await openOn({ etcd: gated, prefix: address.prefix, clock: systemClock, prng, log: silentLogger });
  undo.push(() => store.close());
  return {
    store,
    gate: {
      open: () => shut.resolve(),
      close: () => {
        shut = Promise.withResolvers<void>();
      },
      closeAfter: (count, done) => {
        left = count;
        doneAtLast = done;
      },
      loseNext: (what) => {
        lose = what;
      },
    },
  };
}

interface Writing {
  readonly acked: ReadonlyMap<Key, Revision>;
  /** What was refused, and surely not written. */
  readonly refused: ReadonlySet<Key>;
  readonly failures: readonly string[];
  /** Resolves when this many more were answered. */
  more(count: number): Promise<void>;
  stop(): Promise<void>;
}

/** Four writers on each store, each key once. */
function writeUntilStopped(stores: readonly Store[]): Writing {
  const acked = new Map<Key, Revision>();
  const refused = new Set<Key>();
  const failures: string[] = [];
  let waiting: (() => void)[] = [];
  let stopped = false;
  let next = 0;
  const write = async (store: Store): Promise<void> => {
    while (!stopped) {
      const key = `k/${next++}`;
      try {
        const result = await store.commit([{ key, ifRevision: 0 }], [{ key, value: bytes(key) }]);
        if (!result.ok) failures.push(`${key} was there already`);
        else acked.set(key, result.revision);
      } catch (error) {
        if (!(error instanceof StoreError)) throw error;
        failures.push(`${error.code} ${error.outcome}: ${error.message}`);
        if (error.outcome === 'none') refused.add(key);
      }
      for (const wake of waiting.splice(0)) wake();
    }
  };
  const writers = Promise.all(stores.flatMap((store) => Array.from({ length: 4 }, () => write(store))));
  return {
    acked,
    refused,
    failures,
    async more(count) {
      const wanted = acked.size + count;
      while (acked.size < wanted)
        await Promise.race([
          writers,
          new Promise<void>((resolve) => {
            waiting.push(resolve);
          }),
        ]);
    },
    async stop() {
      stopped = true;
      await writers;
      waiting = [];
    },
  };
}

async function expectEveryAnswerOnce(store: Store, { acked, refused }: Writing): Promise<void> {
  const { entries, revision } = await store.list('');
  const events = await eventsThrough(store, 0, revision);
  expect(events.map((event) => event.revision)).toEqual(Array.from({ length: revision }, (_, i) => i + 1));
  expect(new Set(events.map(({ key }) => key)).size).toBe(events.length);
  const written = new Map(events.map((event) => [event.key, event.revision]));
  for (const [key, answered] of acked) expect(written.get(key)).toBe(answered);
  for (const key of refused) expect(written.has(key)).toBe(false);
  expect(entries).toHaveLength(events.length);
}

async function eventsThrough(store: Store, after: Revision, through: Revision): Promise<WatchEvent[]> {
  const events: WatchEvent[] = [];
  if (after >= through) return events;
  for await (const batch of store.watch('', after, new AbortController().signal)) {
    events.push(...batch);
    if ((events.at(-1)?.revision ?? 0) >= through) break;
  }
  return events;
}

async function put(store: Store, key: Key, value: string): Promise<Revision> {
  const result = await store.commit([], [{ key, value: bytes(value) }]);
  if (!result.ok) throw new Error('a commit without conditions cannot fail on one');
  return result.revision;
}

function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

async function forever(step: () => Promise<unknown>): Promise<never> {
  for (;;) await step();
}

async function openWhenThere(rest: string): Promise<Store> {
  for (;;) {
    try {
      return await open(rest);
    } catch (error) {
      if (!(error instanceof StoreError) || error.code !== 'Unavailable') throw error;
    }
  }
}

/** An authority, and a certificate of it that servers and clients may show. */
function makeCertificates(folder: string): void {
  const openssl = (words: string): string =>
    execFileSync('openssl', words.split(' '), { cwd: folder, encoding: 'utf8', stdio: 'pipe' });
  const newKey = '-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes';
  openssl(`req -x509 ${newKey} -keyout ca.key -out ca.pem -subj /CN=authority -days 2`);
  openssl(`req ${newKey} -keyout peer.key -out peer.csr -subj /CN=peer`);
  writeFileSync(join(folder, 'names'), 'subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n');
  openssl('x509 -req -in peer.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out peer.pem -days 2 -extfile names');
}

async function expectDenied(rest: string, message: string): Promise<void> {
  const opening = openEtcdStore({ rest });
  await expect(opening).rejects.toMatchObject({ code: 'Denied' });
  await expect(opening).rejects.toThrow(message);
  await expect(opening).rejects.not.toThrow('secret');
}

async function partsLeft(etcd: TestEtcd, prefix: string): Promise<number> {
  const range = { key: base64(`${prefix}/part/`), range_end: base64(`${prefix}/part0`), keys_only: true };
  return Number((await member(etcd).ask('kv/range', range))['count'] ?? 0);
}

function member(etcd: TestEtcd): TestMember {
  const [first] = etcd.members;
  if (!first) throw new Error('etcd has no member');
  return first;
}

function statusOf(one: TestMember): Promise<{ leader: string; header: { member_id: string } }> {
  return one.askAny('maintenance/status', {});
}

async function roles(etcd: TestEtcd): Promise<{ leader: TestMember; others: TestMember[] }> {
  const found = await Promise.all(etcd.members.map(async (one) => ({ one, status: await statusOf(one) })));
  const leads = ({ status }: (typeof found)[number]): boolean => status.leader === status.header.member_id;
  const leader = found.find(leads)?.one;
  if (!leader) throw new Error('nobody leads');
  return { leader, others: etcd.members.filter((one) => one !== leader) };
}
