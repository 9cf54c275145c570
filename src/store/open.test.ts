import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openStore } from './open.ts';

describe('openStore', () => {
  it('opens a store in memory', async () => {
    const store = await openStore('memory:');
    expect((await store.list('')).revision).toBe(0);
    await store.close();
  });

  it('opens a SQLite file, and makes its folder', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'berth-open-'));
    try {
      const store = await openStore(`sqlite:${folder}/new/store.db`);
      expect(await store.commit([], [{ key: 'a', value: new Uint8Array([1]) }])).toEqual({ ok: true, revision: 1 });
      await store.close();
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it.each([
    [
      'an unknown scheme',
      'mongodb://user:secret@db',
      'no store has the scheme "mongodb"; write one of: memory:, sqlite:PATH, postgres://USER',
    ],
    ['a path', '/var/lib/store.db', 'begins with a scheme; did you mean sqlite:/var/lib/store.db?'],
    ['a path with a colon', './a:b/store.db', 'did you mean sqlite:./a:b/store.db?'],
    ['the name of a file', 'store.db', 'did you mean sqlite:store.db?'],
    ['no scheme', '//user:secret@db/x.db', 'no store has the scheme "//user"'],
    ['what may hold a password', '/user:secret@db', 'no store has the scheme "/user"'],
    ['nothing', '', 'a store URL begins with a scheme; write one of: memory:'],
    ['a name every object has', 'constructor:x', 'no store has the scheme "constructor"'],
    ['a PostgreSQL URL without a host', 'postgres:db', 'written postgres://USER:PASSWORD@HOST'],
    ['its other scheme', 'postgresql://user:secret@db/x?schema=Größe', 'schema "Größe" was refused'],
    ['no path', 'sqlite:', 'written sqlite:PATH'],
    ['no etcd', 'etcd:', 'written etcd://HOST:PORT'],
    ['a path where none belongs', 'memory:x', 'written memory:'],
  ])('refuses %s, naming what it knows', async (_, url, message) => {
    const opening = openStore(url);
    await expect(opening).rejects.toMatchObject({ name: 'StoreError', code: 'Invalid' });
    await expect(opening).rejects.toThrow(message);
    await expect(opening).rejects.not.toThrow('secret');
  });
});
