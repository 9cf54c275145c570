// What the PostgreSQL store does when the server crashes, ends its connections, is silent, refuses it, is full, or is not to be trusted.
// All real: a real server, real connections cut at chosen points. Cases that need root say so when they are skipped.

import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Revision, type Store, StoreError, type WatchEvent } from '../store.ts';
import { openPostgresStore, type PostgresStoreOptions } from './postgres-store.ts';
import { giveTo, postgresPrograms, startPostgres, type TestPostgres } from './test-postgres.ts';
import { startProxy, type TestProxy } from './test-proxy.ts';

const root = process.getuid?.() === 0;
let server: TestPostgres;
let schema: string;
let schemas = 0;
let undo: (() => unknown)[];

const open = async (options: Partial<PostgresStoreOptions> = {}): Promise<Store> => {
  const store = await openPostgresStore({ rest: server.rest(schema), ...options });
  undo.push(() => store.close());
  return store;
};
const openProxy = async (): Promise<TestProxy> => {
  const proxy = await startProxy(server.port);
  undo.push(() => proxy.close());
  return proxy;
};

describe.skipIf(postgresPrograms === null)('the PostgreSQL store (package postgresql)', () => {
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server.dispose());
  beforeEach(() => {
    schema = `s${schemas++}`;
    undo = [];
  });
  afterEach(async () => {
    for (const step of undo.reverse()) await step();
  });

  describe('when its server crashes', () => {
    it('loses nothing it has answered, does nothing twice, and its watchers go on', async () => {
      const store = await open();
      const work = new Work(store);
      const watch = followed(store);
      for (let crash = 0; crash < 3; crash++) {
        await work.answered(50);
        await server.stop('immediate');
        await server.start();
        await work.answered(50);
      }
      await work.stop();
      expect(work.failures).toEqual([]);
      expect(await work.foundIn(await open())).toEqual(work.done);
      const { revision } = await store.list('');
      const events = await watch.through(revision);
      expect(events.map((event) => event.revision)).toEqual(Array.from({ length: revision }, (_, i) => i + 1));
    });

    it('tells commits and watchers, when it stays away for longer than it is waited for', async () => {
      const store = await open({ patienceMs: 200 });
      await put(store, 'a');
      const watch = followed(store);
      await watch.through(1);
      await server.stop('immediate');
      undo.push(() => server.start()); // for the following cases
      const failed = await failureOf(put(store, 'b'));
      expect(failed).toMatchObject({ code: 'Unavailable', outcome: 'none' });
      expect(failed.message).toContain(`127.0.0.1:${server.port}/postgres`);
      expect(await failureOf(store.get('a'))).toMatchObject({ code: 'Unavailable' });
      expect(await failureOf(watch.ended)).toMatchObject({ code: 'Unavailable' });
    });

    it('tells watchers within seconds, however long requests are tried', async () => {
      const store = await open({ patienceMs: 600_000 });
      await put(store, 'a');
      const watch = followed(store);
      await watch.through(1);
      await server.stop('fast');
      const reading = store.get('a');
      expect(await failureOf(watch.ended)).toMatchObject({ code: 'Unavailable' });
      await server.start();
      expect(await reading).toMatchObject({ revision: 1 });
    });
  });

  it('can be closed while it waits for its server, and leaves no connection behind', async () => {
    const store = await open({ patienceMs: 500 });
    await server.stop('immediate');
    const [reading, committing] = [failureOf(store.get('a')), failureOf(put(store, 'a'))];
    await store.close();
    expect(await committing).toMatchObject({ code: 'Unavailable', outcome: 'none' });
    expect(['Closed', 'Unavailable']).toContain((await reading).code);
    await server.start();
    expect(await server.sql(`SELECT pid FROM pg_stat_activity WHERE application_name = 'berth'`)).toEqual([]);
  });

  describe('when its connections are ended', () => {
    it('has every answered commit exactly once, whenever they are', async () => {
      const stores = [await open(), await open()];
      const works = stores.map((store) => new Work(store));
      const watches = stores.map(followed);
      for (let kill = 0; kill < 40; kill++) {
        await works[kill % 2]?.answered(1 + ((kill * 7) % 10));
        await server.sql(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'berth'`);
      }
      for (const work of works) await work.stop();
      const last = await open();
      for (const work of works) {
        expect(work.failures).toEqual([]);
        expect(await work.foundIn(last)).toEqual(work.done);
      }
      const { revision } = await last.list('', { limit: 1 });
      expect(revision).toBe(works.reduce((sum, work) => sum + work.done.size, 0));
      for (const watch of watches)
        expect((await watch.through(revision)).map((event) => event.revision)).toEqual(
          Array.from({ length: revision }, (_, i) => i + 1),
        );
    });

    it('finds what it had committed, when only the answer was lost', async () => {
      const proxy = await openProxy();
      const store = await open({ rest: server.rest(schema, { port: proxy.port }) });
      await put(store, 'before');
      const lost = proxy.loseAnswerTo('the lost one');
      const commits = [
        store.commit([{ key: 'before', ifRevision: 1 }], [{ key: 'a', value: bytes('the lost one') }]),
        store.commit([{ key: 'before', ifRevision: 9 }], [{ key: 'b', value: bytes('x') }]),
        store.commit([], [{ key: 'absent', value: null }]),
        store.commit(
          [],
          [
            { key: 'absent', value: null },
            { key: 'c', value: bytes('x') },
          ],
        ),
      ];
      await lost;
      expect(await Promise.all(commits)).toEqual([
        { ok: true, revision: 2 },
        { ok: false, key: 'before' },
        { ok: true, revision: 3 },
        { ok: true, revision: 3 },
      ]);
      expect((await followed(store).through(3)).map(({ key, revision }) => [key, revision])).toEqual([
        ['before', 1],
        ['a', 2],
        ['c', 3],
      ]);
    });

    it('commits what never arrived, and what is late can do nothing any more', async () => {
      const proxy = await openProxy();
      const store = await open({ rest: server.rest(schema, { port: proxy.port }) });
      const other = await open();
      const delayed = proxy.delay('the late one');
      const committed = store.commit([{ key: 'a', ifRevision: 0 }], [{ key: 'a', value: bytes('the late one') }]);
      const late = await delayed;
      expect(await committed).toEqual({ ok: true, revision: 1 });
      await other.commit([], [{ key: 'a', value: null }]);
      await late.deliver(); // its condition would hold
      expect(await other.list('')).toEqual({ entries: [], revision: 2 });
    });

    it('says that nobody can know, when the server falls silent under a commit', async () => {
      const proxy = await openProxy();
      const store = await open({
        rest: server.rest(schema, { port: proxy.port }),
        answerMsMax: 300,
        patienceMs: 300,
      });
      await put(store, 'a');
      proxy.silence();
      const failed = await failureOf(put(store, 'b'));
      expect(failed).toMatchObject({ code: 'Unavailable', outcome: 'unknown' });
      expect(failed.message).toContain('may or may not have happened');
    });
  });

  describe('is refused, and says why:', () => {
    it('with a wrong password, without repeating it', async () => {
      await server.sql(`CREATE ROLE locked LOGIN PASSWORD 'right'`);
      const rules = join(server.folder, 'data', 'pg_hba.conf');
      writeFileSync(rules, `host all locked 127.0.0.1/32 scram-sha-256\n${readFileSync(rules, 'utf8')}`);
      await server.sql('SELECT pg_reload_conf()');
      const failed = await failureOf(open({ rest: server.rest(schema, { user: 'locked:secretive' }) }));
      expect(failed).toMatchObject({ code: 'Denied', outcome: 'none' });
      expect(failed.message).toContain('look at user and password');
      expect(failed.message).not.toContain('secretive');
      const without = await failureOf(open({ rest: server.rest(schema, { user: 'locked' }) }));
      expect(without).toMatchObject({ code: 'Denied' });
      expect(without.message).toContain('the server asks for a password, and the URL has none; write it into the URL');
      expect(without.message).not.toContain('SASL');
    });

    it('with a database that is not there', async () => {
      const failed = await failureOf(open({ rest: server.rest(schema, { database: 'nowhere' }) }));
      expect(failed).toMatchObject({ code: 'Invalid' });
      expect(failed.message).toContain('create the database');
    });

    it('with an sslmode that wants TLS of a server that has none', async () => {
      const failed = await failureOf(open({ rest: `${server.rest(schema)}&sslmode=verify-full` }));
      expect(failed).toMatchObject({ code: 'Invalid' });
      expect(failed.message).toMatch(/does not support SSL connections; sslmode asks for TLS/);
      expect(failed.message).not.toContain('password');
    });

    it('with a role that may not make the schema, until it may', async () => {
      await server.sql('CREATE ROLE plain LOGIN');
      const failed = await failureOf(open({ rest: server.rest(schema, { user: 'plain' }) }));
      expect(failed).toMatchObject({ code: 'Denied' });
      expect(failed.message).toContain('allow the role to create schemas');
      await server.sql(`CREATE SCHEMA ${schema} AUTHORIZATION plain`);
      const store = await open({ rest: server.rest(schema, { user: 'plain' }) });
      expect(await put(store, 'a')).toBe(1);
    });

    it('where nothing listens', async () => {
      const proxy = await startProxy(server.port);
      await proxy.close();
      const failed = await failureOf(open({ rest: server.rest(schema, { port: proxy.port }) }));
      expect(failed).toMatchObject({ code: 'Unavailable', outcome: 'none' });
      expect(failed.message).toContain(`127.0.0.1:${proxy.port}`);
    });

    it('by a store of a newer Berth', async () => {
      await (await open()).close();
      await server.sql(`UPDATE ${schema}.state SET format = 99`);
      const failed = await failureOf(open());
      expect(failed).toMatchObject({ code: 'Invalid' });
      expect(failed.message).toContain('newer Berth (format 99');
    });

    it.each(['fsync=off', 'full_page_writes=off'])('by a server that runs with %s', async (setting) => {
      await server.stop('fast');
      await server.start([setting]);
      const failed = await failureOf(open());
      await server.stop('fast');
      await server.start();
      expect(failed).toMatchObject({ code: 'Invalid' });
      expect(failed.message).toContain('can lose everything');
    });

    it('by a standby, and goes on when it is promoted', async () => {
      const store = await open();
      await put(store, 'a');
      await server.stop('fast');
      writeFileSync(join(server.folder, 'data', 'standby.signal'), '');
      if (root) giveTo('postgres', join(server.folder, 'data', 'standby.signal'));
      await server.start();
      const failed = await failureOf(open());
      expect(failed).toMatchObject({ code: 'Unavailable' });
      expect(failed.message).toContain('it is a standby');
      const reading = store.get('a');
      const committing = put(store, 'b');
      await server.sql('SELECT pg_promote()');
      expect(await reading).toMatchObject({ revision: 1 });
      expect(await committing).toBe(2);
    });

    it('by a server that has no connection left, until it has', async () => {
      await server.stop('fast');
      await server.start(['max_connections=4', 'superuser_reserved_connections=0']);
      undo.push(async () => {
        await server.stop('fast');
        await server.start();
      });
      const one = await open(); // one connection writes, one follows the log
      const other = await open();
      const failed = await failureOf(open());
      expect(failed).toMatchObject({ code: 'Unavailable' });
      expect(failed.message).toContain('raise max_connections');
      const reading = one.get('a'); // a third one
      await other.close();
      expect(await reading).toBeNull();
    });
  });

  it('asks for commits that are on the disk, whatever the server does by default', async () => {
    await server.sql('ALTER ROLE postgres SET synchronous_commit = off');
    undo.push(() => server.sql('ALTER ROLE postgres RESET synchronous_commit'));
    const store = await open();
    await server.sql(`
      CREATE FUNCTION ${schema}.told() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN RAISE EXCEPTION 'synchronous_commit is %', current_setting('synchronous_commit'); END $$`);
    await server.sql(`CREATE TRIGGER told BEFORE INSERT ON ${schema}.log EXECUTE FUNCTION ${schema}.told()`);
    expect((await failureOf(put(store, 'a'))).message).toContain('synchronous_commit is on');
  });

  it('is opened by many at once where nothing is yet', async () => {
    const stores = await Promise.all(Array.from({ length: 8 }, () => open()));
    const revisions = await Promise.all(stores.map((store, i) => put(store, `k${i}`)));
    expect(revisions.sort((a, b) => a - b)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  });

  it.skipIf(!root)('says that the disk is full, and goes on when there is room (mounting needs root)', async () => {
    const folder = join(server.folder, 'small');
    mkdirSync(folder);
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=8m', 'tmpfs', folder]);
    undo.push(() => execFileSync('umount', ['--lazy', folder]));
    giveTo('postgres', folder);
    await server.sql(`CREATE TABLESPACE small LOCATION '${folder}'`);
    await server.sql('ALTER ROLE postgres SET default_tablespace = small');
    undo.push(async () => {
      await server.sql('ALTER ROLE postgres RESET default_tablespace');
      await server.sql(`DROP SCHEMA ${schema} CASCADE`);
      await server.sql('DROP TABLESPACE small');
    });
    const store = await open();
    const filler = join(folder, 'filler');
    writeFileSync(filler, Buffer.alloc(4 * 1024 * 1024));
    let revision = 0;
    let failed: StoreError | undefined;
    while (!failed) {
      const large = { key: `k${revision}`, value: new Uint8Array(100_000) };
      const result = await store.commit([], [large]).catch((error: unknown) => {
        failed = expectStoreError(error);
      });
      if (result?.ok) revision = result.revision;
    }
    expect(failed).toMatchObject({ code: 'Full', outcome: 'none' });
    expect((await store.list('')).revision).toBe(revision);
    rmSync(filler);
    expect(await put(store, 'small')).toBe(revision + 1);
    await store.close();
  });

  describe('says that its data are damaged', () => {
    it.each([
      {
        name: 'a bit turned in the log',
        damage: `UPDATE SCHEMA.log SET events = set_bit(events, 40, 1 - get_bit(events, 40)) WHERE revision = 2`,
        message: 'revision 2 of its log has a wrong checksum',
      },
      { name: 'a revision lost', damage: 'DELETE FROM SCHEMA.log WHERE revision = 2', message: 'lacks revision 2' },
    ])('$name', async ({ damage, message }) => {
      const store = await open();
      for (const key of ['a', 'b', 'c']) await put(store, key);
      await server.sql(damage.replace('SCHEMA', schema));
      const failed = await failureOf(followed(await open()).ended);
      expect(failed).toMatchObject({ code: 'Corrupt' });
      expect(failed.message).toContain(message);
    });

    it('when a table is gone', async () => {
      const store = await open();
      await server.sql(`DROP TABLE ${schema}.entries`);
      expect(await failureOf(store.get('a'))).toMatchObject({ code: 'Corrupt' });
      expect(await failureOf(put(store, 'a'))).toMatchObject({ code: 'Corrupt', outcome: 'none' });
    });

    it('when it has gone back to what it was before', async () => {
      const store = await open();
      const watch = followed(store);
      for (const key of ['a', 'b', 'c']) await put(store, key);
      await server.sql(`DELETE FROM ${schema}.log WHERE revision > 1`);
      const failed = await failureOf(watch.ended);
      expect(failed).toMatchObject({ code: 'Corrupt' });
      expect(failed.message).toContain('gone back from revision 3 to 1');
    });
  });
});

/** Eight callers that commit without end, each commit to a key of its own. */
class Work {
  readonly #store: Store;
  readonly #name = `work${works++}`;
  readonly #callers: Promise<void>[];
  readonly #waiting: { readonly count: number; readonly resolve: () => void }[] = [];
  #stopped = false;
  /** What was answered, by key. */
  readonly done = new Map<string, Revision>();
  readonly failures: unknown[] = [];

  constructor(store: Store) {
    this.#store = store;
    this.#callers = Array.from({ length: 8 }, (_, caller) => this.#run(caller));
  }

  /** Resolves when this many more have been answered. */
  answered(more: number): Promise<void> {
    return new Promise((resolve) => this.#waiting.push({ count: this.done.size + more, resolve }));
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#callers);
  }

  /** What a store has of it, by key. */
  async foundIn(store: Store): Promise<Map<string, Revision>> {
    const { entries } = await store.list(`${this.#name}/`);
    return new Map(entries.map(({ key, revision }) => [key, revision]));
  }

  async #run(caller: number): Promise<void> {
    for (let i = 0; !this.#stopped; i++) {
      const key = `${this.#name}/${caller}/${i}`;
      try {
        this.done.set(key, await put(this.#store, key));
      } catch (error) {
        this.failures.push(error);
      }
      for (const { count, resolve } of this.#waiting) if (this.done.size >= count) resolve();
    }
  }
}
let works = 0;

/** Collects all events from the start; only revisions of one event are committed here. */
function followed(store: Store): { through(revision: Revision): Promise<WatchEvent[]>; ended: Promise<void> } {
  const events: WatchEvent[] = [];
  const waiting = new Set<() => void>();
  const done = new AbortController();
  const ended = (async (): Promise<void> => {
    for await (const batch of store.watch('', 0, done.signal)) {
      events.push(...batch);
      for (const look of waiting) look();
    }
  })();
  ended.catch(() => undefined); // callers get the error
  const through = async (revision: Revision): Promise<WatchEvent[]> => {
    await Promise.race([
      ended,
      new Promise<void>((resolve) => {
        const look = (): void => {
          if ((events.at(-1)?.revision ?? 0) >= revision) resolve();
        };
        waiting.add(look);
        look();
      }),
    ]);
    return events;
  };
  return { through, ended };
}

async function put(store: Store, key: string): Promise<Revision> {
  const result = await store.commit([], [{ key, value: bytes(key) }]);
  if (!result.ok) throw new Error('a commit without conditions cannot fail on one');
  return result.revision;
}

async function failureOf(promise: Promise<unknown>): Promise<StoreError> {
  return promise.then(
    () => {
      throw new Error('it should have failed');
    },
    (error: unknown) => expectStoreError(error),
  );
}

function expectStoreError(error: unknown): StoreError {
  expect(error).toBeInstanceOf(StoreError);
  return error as StoreError;
}

function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}
