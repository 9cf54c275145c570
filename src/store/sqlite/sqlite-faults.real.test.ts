// What the SQLite store does when its process is killed, its disk is full, fails or loses power, and its file is damaged. All real:
// real processes, real file systems, real bytes. Cases that need root or a tool say so when they are skipped.

import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Compacted, type Store, StoreError } from '../store.ts';
import { openSqliteStore } from './sqlite-store.ts';

const root = process.getuid?.() === 0;
let folder: string;
let path: string;
let undo: (() => void)[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'berth-faults-'));
  path = join(folder, 'store.db');
  undo = [() => rmSync(folder, { recursive: true })];
});
afterEach(() => {
  for (const step of undo.reverse()) step();
});

describe('a file that is taken from under an open store', () => {
  const write = (key: string) => [{ key, value: Buffer.from(key) }];
  const begun = async (): Promise<Store> => {
    const store = await openSqliteStore({ path });
    undo.push(() => void store.close());
    await store.commit([], write('before'));
    return store;
  };
  const watched = async (store: Store): Promise<void> => {
    for await (const _ of store.watch('', 0, new AbortController().signal));
  };

  it.each(['', '-wal', '.lock'])('lets nothing be written from then on: store.db%s', async (end) => {
    const store = await begun();
    const aside = join(folder, 'aside');
    renameSync(`${path}${end}`, aside);
    const refused = {
      code: 'Unavailable',
      outcome: 'none',
      message: expect.stringContaining(`${path}${end} was removed or replaced`),
    };
    await expect(store.commit([], write('lost'))).rejects.toMatchObject(refused);
    writeFileSync(`${path}${end}`, '');
    await expect(store.commit([], write('lost'))).rejects.toMatchObject(refused);
    expect((await store.list('')).entries.map(({ key }) => key)).toEqual(['before']);
    renameSync(aside, `${path}${end}`);
    expect(await store.commit([], write('after'))).toMatchObject({ ok: true });
  });

  it('ends watches, and lets none begin until it is back', async () => {
    const store = await begun();
    const watch = watched(store);
    const aside = join(folder, 'aside');
    renameSync(path, aside);
    await expect(store.commit([], write('lost'))).rejects.toMatchObject({ code: 'Unavailable' });
    await expect(watch).rejects.toMatchObject({ code: 'Unavailable' });
    await expect(watched(store)).rejects.toMatchObject({ code: 'Unavailable' });
    renameSync(aside, path);
    const again = watched(store);
    await store.close();
    await expect(again).rejects.toMatchObject({ code: 'Closed' });
  });
});

describe('a process killed while it commits', () => {
  it('loses no commit that was answered, and none in part, in 5 kills of one file', async () => {
    let before = 0;
    for (let kill = 0; kill < 5; kill++) {
      const writer = startWriter(path);
      const lines = await writer.linesUntil((line, count) => line.startsWith('ok') && count > 200);
      writer.process.kill('SIGKILL');
      lines.push(...(await writer.rest()));
      const store = await openSqliteStore({ path });
      await expectAnswered(store, lines);
      const { revision } = await store.list('', { limit: 1 });
      expect(revision).toBeGreaterThan(before + 100);
      before = revision;
      // The next writer begins at the same keys.
      const { entries } = await store.list('');
      await store.commit(
        [],
        entries.map(({ key }) => ({ key, value: null })),
      );
      await store.close();
    }
  });
});

describe('two processes on one file', () => {
  it('the second is refused and told who holds it, until the first is gone', async () => {
    const writer = startWriter(path);
    const [opened] = await writer.linesUntil((line) => line.startsWith('open'));
    const pid = opened?.split(' ')[1];
    await expectRefused(path, 'Locked', `in use by process ${pid}`);
    writer.process.kill('SIGKILL');
    await writer.rest();
    await (await openSqliteStore({ path })).close();
  });

  it('the second of one process too, by whatever name', async () => {
    const store = await openSqliteStore({ path });
    execFileSync('ln', ['-s', path, `${path}-link`]);
    await expectRefused(path, 'Locked', `this same process (pid ${process.pid})`);
    await expectRefused(`${path}-link`, 'Locked', `this same process (pid ${process.pid})`);
    await store.close();
  });

  it('a program that is not Berth cannot write into the open file', async () => {
    const store = await openSqliteStore({ path });
    const intruder = new Database(path, { timeout: 0 });
    expect(() => intruder.exec('DELETE FROM entries')).toThrow('locked');
    intruder.close();
    await store.close();
  });
});

describe('a file that is refused stays as it was:', () => {
  interface Damage {
    readonly name: string;
    readonly damage: (path: string) => void;
    readonly code: string;
    readonly message: string;
  }
  const rows: readonly Damage[] = [
    { name: 'empty', damage: (file) => truncateSync(file, 0), code: 'Corrupt', message: 'is empty (0 bytes)' },
    { name: 'cut in its header', damage: (file) => truncateSync(file, 50), code: 'Corrupt', message: 'at byte 50' },
    {
      name: 'cut in the middle',
      damage: (file) => truncateSync(file, 40_000),
      code: 'Corrupt',
      message: 'cut off at byte 40000 of',
    },
    {
      name: 'not a database',
      damage: (file) => writeFileSync(file, 'hello world\n'.repeat(100)),
      code: 'Invalid',
      message: 'is not a SQLite file',
    },
    {
      name: 'a few words',
      damage: (file) => writeFileSync(file, 'hello'),
      code: 'Invalid',
      message: 'is not a SQLite file',
    },
    {
      name: "another program's database",
      damage: (file) => {
        rmSync(file);
        const db = new Database(file);
        db.exec('PRAGMA application_id = 42; CREATE TABLE theirs (x)');
        db.close();
      },
      code: 'Invalid',
      message: 'another program (application id 42)',
    },
    {
      name: 'of a newer Berth',
      damage: (file) => edit(file, `UPDATE meta SET value = 7 WHERE name = 'schema'`),
      code: 'Invalid',
      message: 'newer Berth (schema 7, this one knows 2)',
    },
    {
      name: 'a bit turned in a value',
      damage: (file) => turnBit(file, 'value of k/42.'),
      code: 'Corrupt',
      message: 'wrong checksum',
    },
    {
      name: 'a page of zeros',
      damage: (file) => {
        const bytes = readFileSync(file);
        writeFileSync(file, bytes.fill(0, 5 * 8192, 6 * 8192));
      },
      code: 'Corrupt',
      message: 'page 6',
    },
    {
      name: 'a revision missing from the log',
      damage: (file) => edit(file, 'DELETE FROM log WHERE revision = 50'),
      code: 'Corrupt',
      message: '99 of the 100 revisions',
    },
    {
      name: 'the end missing from the log',
      damage: (file) => edit(file, 'DELETE FROM log WHERE revision = 100'),
      code: 'Corrupt',
      message: 'ends at revision 99, but the store is at 100',
    },
    {
      name: 'a lost row of meta',
      damage: (file) => edit(file, `DELETE FROM meta WHERE name = 'revision'`),
      code: 'Corrupt',
      message: 'no row "revision"',
    },
  ];

  it.each(rows)('$name', async ({ damage, code, message }) => {
    await fill(path, 100);
    damage(path);
    const before = readFileSync(path);
    await expectRefused(path, code, message);
    expect(readFileSync(path).equals(before)).toBe(true);
    if (code === 'Corrupt') await expectRefused(path, code, 'put a backup in its place');
    await expect(openSqliteStore({ path })).rejects.not.toThrow(/-wal|\n|in database main/);
  });

  it('damaged, with a log beside it: neither is touched', async () => {
    const writer = startWriter(path);
    await writer.linesUntil((line, count) => line.startsWith('ok') && count > 1500);
    writer.process.kill('SIGKILL');
    await writer.rest();
    expect(existsSync(`${path}-wal`)).toBe(true);
    const bytes = readFileSync(path);
    writeFileSync(path, bytes.fill(0, 8192 + 100)); // all but the first page and a little
    const before = [path, `${path}-wal`].map((file) => readFileSync(file));
    await expectRefused(path, 'Corrupt', 'is damaged');
    await expectRefused(path, 'Corrupt', `${path} and ${path}-wal, move both away, and put a backup in their place`);
    expect([path, `${path}-wal`].map((file) => readFileSync(file))).toEqual(before);
  });

  it('gone, with its log still there', async () => {
    writeFileSync(`${path}-wal`, 'x');
    await expectRefused(path, 'Corrupt', 'is missing, but its write-ahead log');
    expect(existsSync(path)).toBe(false);
  });

  it('too large to be read through at start: the bad value is refused when it is read', async () => {
    await fill(path, 100);
    turnBit(path, 'value of k/42.');
    const store = await openSqliteStore({ path, fullCheckBytesMax: 0 });
    const failures = await Promise.allSettled([store.get('k/42'), store.list(''), readAll(store)]);
    expect(failures.some((one) => one.status === 'rejected')).toBe(true);
    for (const one of failures)
      if (one.status === 'rejected') expect(one.reason).toMatchObject({ code: 'Corrupt', outcome: 'none' });
    await store.close();
  });

  it('a lock file that is none', async () => {
    writeFileSync(`${path}.lock`, 'not a database, and long enough to tell'.repeat(10));
    await expectRefused(path, 'Unavailable', `remove ${path}.lock`);
  });

  it('a folder that cannot be made', async () => {
    writeFileSync(join(folder, 'file'), '');
    await expectRefused(join(folder, 'file', 'store.db'), 'Unavailable', 'making the folder of the store');
  });
});

it('a creation that was cut short is begun anew', async () => {
  writeFileSync(`${path}.new`, 'half a file');
  await (await openSqliteStore({ path })).close();
  expect(readdirSync(folder).sort()).toEqual(['store.db', 'store.db.lock']);
});

describe.skipIf(!root)('a full disk (needs root to mount one)', () => {
  it('answers Full with nothing written, reads on, and goes on by itself when there is room', async () => {
    const disk = join(folder, 'disk');
    mkdirSync(disk);
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=4m', 'tmpfs', disk]);
    undo.push(() => execFileSync('umount', [disk]));
    const store = await openSqliteStore({ path: join(disk, 'store.db') });
    await commit(store, 'small', Buffer.alloc(100));
    const ballast = join(disk, 'ballast');
    writeFileSync(ballast, Buffer.alloc(3_000_000));

    let written = 0;
    const failure = await (async () => {
      for (;;) {
        try {
          await commit(store, `k/${written}`, Buffer.alloc(20_000));
          written++;
        } catch (error) {
          return error;
        }
      }
    })();
    expect(failure).toBeInstanceOf(StoreError);
    expect(failure).toMatchObject({ code: 'Full', outcome: 'none' });
    expect(await store.list('k/')).toMatchObject({ entries: { length: written }, revision: written + 1 });
    expect(await store.get(`k/${written}`)).toBeNull();

    rmSync(ballast);
    expect(await commit(store, 'after', Buffer.alloc(20_000))).toEqual({ ok: true, revision: written + 2 });
    await store.close();
    const again = await openSqliteStore({ path: join(disk, 'store.db') });
    expect(await again.list('')).toMatchObject({ entries: { length: written + 2 }, revision: written + 2 });
    await again.close();
  });
});

const strace = canTrace();
describe.skipIf(!strace)('an fsync that fails once (needs strace)', () => {
  it('never answers ok what is lost nor "none" what is there, whichever of the first 24 fails', async () => {
    let unknown = 0;
    for (let nth = 1; nth <= 24; nth++) {
      const file = join(folder, `store-${nth}.db`);
      const inject = [
        '-f',
        '-o',
        '/dev/null',
        '-e',
        'trace=fsync,fdatasync',
        '-e',
        `inject=fsync:error=EIO:when=${nth}`,
      ];
      const writer = startWriter(file, ['12'], ['strace', ...inject]);
      const lines = await writer.rest();
      if (!existsSync(file)) continue; // it failed while the file was made, and said so
      const store = await openSqliteStore({ path: file });
      await expectAnswered(store, lines);
      await store.close();
      unknown += lines.filter((line) => line.startsWith('failed Unavailable unknown')).length;
      // The same process went on: it has an answer to each of its commits, and the last ones are good again.
      if (lines.some((line) => line.startsWith('ok')))
        expect(lines.filter((line) => /^(ok|failed)/.test(line)).length).toBe(12);
    }
    expect(unknown).toBeGreaterThan(0);
  });
});

describe.skipIf(!strace)('an fsync that fails while the write-ahead log is moved into the file (needs strace)', () => {
  it('is followed by a file that is opened anew, for the kernel may have dropped what it did not write', () => {
    const program = join(import.meta.dirname, 'test-checkpoint.ts');
    // Which fsync it is depends on how the file was made: from the first after that on.
    for (let nth = 10; nth <= 30; nth++) {
      const inject = ['-f', '-o', '/dev/null', '-e', 'trace=fsync', '-e', `inject=fsync:error=EIO:when=${nth}`];
      const file = join(folder, `checkpoint-${nth}.db`);
      const { stdout } = spawnSync('strace', [...inject, process.execPath, program, file], { encoding: 'utf8' });
      if (!stdout.includes('transaction failed: moving the write-ahead log')) continue;
      expect(stdout.trim().split('\n')).toEqual([
        'first {"ok":true,"revision":1}',
        'transaction failed: moving the write-ahead log into the file',
        'store opened again: ',
        'second {"ok":true,"revision":2}',
      ]);
      return;
    }
    expect.unreachable('no fsync of the first 30 was of a checkpoint');
  });
});

describe.skipIf(!root || !existsSync('/usr/bin/perl') || !existsSync('/usr/sbin/mkfs.ext4') || !loopWorks())(
  'a power cut (needs root, loop devices, mkfs.ext4 and perl)',
  () => {
    it('keeps every commit that was answered, in 5 cuts, also while history is forgotten', async () => {
      const disk = join(folder, 'disk');
      const image = join(folder, 'disk.img');
      const file = join(disk, 'store.db');
      mkdirSync(disk);
      execFileSync('truncate', ['-s', '64M', image]);
      execFileSync('/usr/sbin/mkfs.ext4', ['-q', '-F', image]);
      const mount = (): unknown => execFileSync('mount', ['-o', 'loop', image, disk]);
      const unmount = (): unknown => execFileSync('umount', [disk]);
      let mounted = false;
      undo.push(() => mounted && unmount());
      for (let cut = 0; cut < 5; cut++) {
        mount();
        mounted = true;
        rmSync(file, { force: true });
        rmSync(`${file}-wal`, { force: true });
        const writer = startWriter(file, cut % 2 === 0 ? [] : ['Infinity', '23']);
        const lines = await writer.linesUntil((line, count) => line.startsWith('ok') && count > 300 + 100 * cut);
        // The process must lose power, too: an fsync that waits while the file system is shut down may report success.
        await stop(writer.process);
        // EXT4_IOC_SHUTDOWN without flushing the journal: what was not synced is gone.
        const shutdown = 'open(F,"<",$ARGV[0]) or die; $f=pack("L",2); ioctl(F,0x8004587d,$f) or die $!';
        execFileSync('perl', ['-e', shutdown, disk]);
        writer.process.kill('SIGKILL');
        lines.push(...(await writer.rest()));
        unmount();
        mounted = false;
        mount();
        mounted = true;
        const store = await openSqliteStore({ path: file });
        await expectAnswered(store, lines);
        await store.close();
        unmount();
        mounted = false;
      }
    });
  },
);

interface Writer {
  readonly process: ChildProcess;
  /** Its lines from where the last call stopped, up to the first for which `enough` is true. */
  linesUntil(enough: (line: string, count: number) => boolean): Promise<string[]>;
  /** Its remaining lines, once it has ended. */
  rest(): Promise<string[]>;
}

function startWriter(file: string, more: readonly string[] = [], wrapper: readonly string[] = []): Writer {
  const program = join(import.meta.dirname, 'test-writer.ts');
  const [command = process.execPath, ...words] = [...wrapper, process.execPath, program, file, ...more];
  const child = spawn(command, words, { stdio: ['ignore', 'pipe', 'ignore'] });
  const ended = once(child, 'exit');
  undo.push(() => child.kill('SIGKILL'));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const linesUntil: Writer['linesUntil'] = async (enough) => {
    const found: string[] = [];
    for (;;) {
      const { value, done } = await lines.next();
      if (done) return found;
      found.push(value);
      if (enough(value, found.length)) return found;
    }
  };
  const rest = async (): Promise<string[]> => {
    const found = await linesUntil(() => false);
    await ended; // its output may end before its other files are closed, and a disk with open files cannot be unmounted
    return found;
  };
  return { process: child, linesUntil, rest };
}

/** Resolves when the process no longer runs a single instruction. */
async function stop(child: ChildProcess): Promise<void> {
  child.kill('SIGSTOP');
  while (!readFileSync(`/proc/${child.pid}/stat`, 'latin1').includes(') T ')) await new Promise(setImmediate);
}

/** Every commit answered ok exists at its revision; no commit answered "none" exists; revisions have no gap. */
async function expectAnswered(store: Store, lines: readonly string[]): Promise<void> {
  const { entries, revision } = await store.list('k/');
  const found = new Map(entries.map((entry) => [entry.key, entry]));
  let last = 0;
  for (const line of lines) {
    const [answer, ...words] = line.split(' ');
    if (answer === 'ok') {
      const [at, key = ''] = words;
      last = Math.max(last, Number(at));
      expect(found.get(key), line).toEqual({
        key,
        value: new Uint8Array(Buffer.from(`value of ${key}`)),
        revision: Number(at),
      });
    }
    if (answer === 'failed' && words[1] === 'none') expect(found.has(words[2] ?? ''), line).toBe(false);
  }
  expect(revision).toBeGreaterThanOrEqual(last);
  const seen = new Set(await readAll(store));
  expect(seen.size).toBe(revision + 1 - Math.min(...seen, revision + 1));
}

/** The revisions of the whole history, or of what is left of it, as a watcher sees them. */
async function readAll(store: Store, after = 0): Promise<number[]> {
  const { revision } = await store.list('', { limit: 1 });
  const seen: number[] = [];
  if (revision === 0) return seen;
  try {
    for await (const batch of store.watch('', after, new AbortController().signal)) {
      seen.push(...batch.map((event) => event.revision));
      if ((seen.at(-1) ?? 0) >= revision) break;
    }
  } catch (error) {
    if (!(error instanceof Compacted) || after > 0) throw error;
    return readAll(store, error.before - 1);
  }
  return seen;
}

async function commit(store: Store, key: string, value: Uint8Array) {
  return store.commit([{ key, ifRevision: 0 }], [{ key, value }]);
}

async function fill(file: string, count: number): Promise<void> {
  const store = await openSqliteStore({ path: file });
  for (let i = 0; i < count; i++) await commit(store, `k/${i}`, Buffer.from(`value of k/${i}.`.padEnd(500, 'x')));
  await store.close();
}

function edit(file: string, sql: string): void {
  const db = new Database(file);
  db.exec(sql);
  db.pragma('journal_mode = DELETE');
  db.pragma('journal_mode = WAL');
  db.close();
}

function turnBit(file: string, text: string): void {
  const bytes = readFileSync(file);
  for (let at = bytes.indexOf(text); at >= 0; at = bytes.indexOf(text, at + 1))
    bytes[at + 3] = (bytes[at + 3] ?? 0) ^ 1;
  writeFileSync(file, bytes);
}

async function expectRefused(file: string, code: string, message: string): Promise<void> {
  const opening = openSqliteStore({ path: file });
  await expect(opening).rejects.toMatchObject({ name: 'StoreError', code, outcome: 'none' });
  await expect(opening).rejects.toThrow(message);
}

function canTrace(): boolean {
  try {
    execFileSync('strace', ['-o', '/dev/null', 'true'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

function loopWorks(): boolean {
  try {
    execFileSync('losetup', ['-f'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
