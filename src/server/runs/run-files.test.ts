import { mkdtemp, rm, symlink, mkdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { createManualClock } from '../../base/manual-clock.ts';
import { ApiError } from '../../api/errors.ts';
import { DirectoryRunStorage } from './directory-run-storage.ts';
import { MemoryRunStorage } from './memory-run-storage.ts';
import { RunFiles } from './run-files.ts';
import type { RunFile, RunStorage } from './run-storage.ts';

const log: RunFile = { instanceId: 'inst_01', part: 'log' };
const artifacts: RunFile = { instanceId: 'inst_01', part: 'artifacts' };
const limits = { logBytesMax: 256, artifactsBytesMax: 10, projectBytesMax: 100 };

async function* pieces(...texts: string[]): AsyncGenerator<Uint8Array> {
  for (const text of texts) yield await Promise.resolve(Buffer.from(text));
}

async function textOf(files: RunFiles, file: RunFile, start = 0): Promise<string> {
  let text = '';
  for await (const chunk of files.read(file, start)) text += Buffer.from(chunk).toString();
  return text;
}

const made: string[] = [];
afterAll(() => Promise.all(made.map((path) => rm(path, { recursive: true }))));

async function directory(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'run-files-'));
  made.push(path);
  return path;
}

const storages: [name: string, create: () => Promise<RunStorage>][] = [
  ['memory', () => Promise.resolve(new MemoryRunStorage())],
  ['a directory', async () => new DirectoryRunStorage(join(await directory(), 'runs'))],
];

describe.each(storages)('the files of runs in %s', (_name, create) => {
  let storage: RunStorage;
  let files: RunFiles;
  const clock = createManualClock();
  const again = (): RunFiles => new RunFiles({ storage, limits, clock });
  const put = (file: RunFile, offset: number, ...texts: string[]) =>
    files.append(file, { offset, bytes: pieces(...texts) });

  beforeEach(async () => {
    storage = await create();
    files = again();
  });

  it('are empty before anything arrives', async () => {
    expect(await files.size(log)).toBe(0);
    expect(await textOf(files, log)).toBe('');
    expect(await files.list()).toEqual([]);
    await files.remove(log.instanceId);
  });

  const appends: [name: string, calls: readonly [offset: number, ...texts: string[]][], content: string][] = [
    [
      'piece after piece',
      [
        [0, 'one\n'],
        [4, 'two\n'],
      ],
      'one\ntwo\n',
    ],
    ['a piece in several chunks', [[0, 'o', 'ne', '\n']], 'one\n'],
    [
      'a piece that was sent before',
      [
        [0, 'one\n'],
        [0, 'one\n'],
      ],
      'one\n',
    ],
    [
      'a piece that is known in part',
      [
        [0, 'one\n'],
        [2, 'e\ntwo\n'],
      ],
      'one\ntwo\n',
    ],
    [
      'known bytes in chunks',
      [
        [0, 'one\n'],
        [0, 'on', 'e\nt', 'wo\n'],
      ],
      'one\ntwo\n',
    ],
    ['an empty piece', [[0, 'one\n'], [4]], 'one\n'],
  ];
  it.each(appends)('take %s', async (_row, calls, content) => {
    let size = 0;
    for (const [offset, ...texts] of calls) size = await put(log, offset, ...texts);
    expect(size).toBe(content.length);
    expect(await textOf(files, log)).toBe(content);
    expect(await textOf(again(), log, 2)).toBe(content.slice(2));
  });

  it('refuse a gap, and say where to continue', async () => {
    await put(log, 0, 'one\n');
    await expect(put(log, 5, 'x')).rejects.toMatchObject({ code: 'Conflict', details: { size: 4 } });
    expect(await textOf(files, log)).toBe('one\n');
  });

  it('keep what arrived of a piece that broke off', async () => {
    const broken = (async function* () {
      yield* pieces('one\n');
      throw new ApiError('InvalidRequest', 'the connection broke');
    })();
    await expect(files.append(log, { offset: 0, bytes: broken })).rejects.toThrow('broke');
    expect(await files.size(log)).toBe(4);
    expect(await put(log, 0, 'one\n', 'two\n')).toBe(8);
  });

  it('take the same piece twice at once', async () => {
    await Promise.all([put(log, 0, 'one\n', 'two\n'), put(log, 0, 'one\ntwo\n')]);
    expect(await textOf(files, log)).toBe('one\ntwo\n');
  });

  it('cut a log at its limit, with a line that says so', async () => {
    const line = `${'x'.repeat(99)}\n`;
    await put(log, 0, line.repeat(7));
    for (const offset of [700, 700, 0, 900]) {
      await expect(put(log, offset, line.repeat(10))).rejects.toMatchObject({ code: 'PayloadTooLarge' });
    }
    const text = await textOf(files, log);
    expect(text.slice(0, 768)).toBe(line.repeat(8).slice(0, 768));
    expect(text.slice(768)).toMatch(/^\n\S+ stderr F berth: the log has reached its limit of 0 MiB; .*\n$/);
    expect(await put(log, 0, line)).toBe(text.length);
  });

  it('refuse artifacts over their limit', async () => {
    expect(await put(artifacts, 0, '0123456789')).toBe(10);
    await expect(put(artifacts, 10, 'x')).rejects.toMatchObject({ code: 'PayloadTooLarge', details: { size: 10 } });
    expect(await textOf(files, artifacts)).toBe('0123456789');
  });

  it('wake those who wait for more', async () => {
    const { signal } = new AbortController();
    const waiting = files.grown(log, signal);
    await put(log, 0, 'one\n');
    await waiting;
    const other = files.grown(log, signal);
    clock.advance(200);
    await other;
    const over = new AbortController();
    const last = files.grown(log, over.signal);
    over.abort();
    await last;
  });

  it('show what another control plane writes, soon after', async () => {
    const other = again();
    const waiting = other.grown(log, new AbortController().signal);
    await put(log, 0, 'one\n');
    await files.append(log, { offset: await other.size(log), bytes: pieces('two\n') });
    clock.advance(200);
    await waiting;
    expect(await textOf(other, log)).toBe('one\ntwo\n');
    await expect(other.append(log, { offset: 9, bytes: pieces('x') })).rejects.toMatchObject({ details: { size: 8 } });
  });

  it('are listed with their size, and removed', async () => {
    await put(log, 0, 'one\n');
    await put(artifacts, 0, 'tar');
    await put({ instanceId: 'inst_02', part: 'log' }, 0, 'x');
    expect(files.appendedBytes).toBe(8);
    await files.stop();
    await files.remove('inst_01');
    expect(await files.list()).toEqual([{ instanceId: 'inst_02', bytes: 1 }]);
    expect(await files.size(artifacts)).toBe(0);
  });
});

it('does not follow a symbolic link out of its directory, and leaves foreign files alone', async () => {
  const path = await directory();
  const storage = new DirectoryRunStorage(join(path, 'runs'));
  const files = new RunFiles({ storage, limits, clock: createManualClock() });
  await mkdir(join(path, 'runs', 'inst_01'), { recursive: true });
  await mkdir(join(path, 'runs', 'lost+found'));
  await writeFile(join(path, 'secret'), 'secret');
  await symlink(join(path, 'secret'), join(path, 'runs', 'inst_01', 'log'));
  await expect(files.append(log, { offset: 6, bytes: pieces('x') })).rejects.toThrow(/ELOOP|symbolic/);
  await expect(textOf(files, log)).rejects.toThrow(/ELOOP|symbolic/);
  expect((await files.list()).map(({ instanceId }) => instanceId)).toEqual(['inst_01']);
});
