import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmod,
  mkdir,
  mkdtemp,
  readFile,
  readlink,
  rm,
  stat,
  symlink,
  truncate,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { createServer } from 'node:net';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { tarArchive } from './tar-archive.ts';

let directory = '';
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-tar-'));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

/** Unpacked by tar(1), as a second opinion. */
async function unpacked(path: string, name: string): Promise<string> {
  const pieces: Uint8Array[] = [];
  for await (const piece of tarArchive(path, name)) pieces.push(piece);
  const into = join(directory, 'unpacked');
  await mkdir(into);
  execFileSync('tar', ['-xpf', '-', '-C', into], { input: Buffer.concat(pieces) });
  return into;
}

it('holds a directory with all that is in it, under another name', async () => {
  const long =
    'a name that is longer than a hundred bytes, so that the old form of tar has no room for it: äöü äöü äöü';
  const source = join(directory, 'site');
  await mkdir(join(source, 'empty'), { recursive: true });
  await mkdir(join(source, 'deep', long), { recursive: true });
  await writeFile(join(source, 'page'), 'x'.repeat(300_000));
  await writeFile(join(source, 'nothing'), '');
  await writeFile(join(source, 'deep', long, 'file'), 'deep');
  await symlink('page', join(source, 'link'));
  await symlink(`/nowhere/${long}`, join(source, 'long link'));
  await chmod(join(source, 'page'), 0o751);
  await utimes(join(source, 'page'), 1_700_000_000, 1_700_000_000);
  const into = join(await unpacked(source, 'www'), 'www');
  expect(await readFile(join(into, 'page'), 'utf8')).toBe('x'.repeat(300_000));
  expect(await readFile(join(into, 'nothing'), 'utf8')).toBe('');
  expect(await readFile(join(into, 'deep', long, 'file'), 'utf8')).toBe('deep');
  expect(await readlink(join(into, 'link'))).toBe('page');
  expect(await readlink(join(into, 'long link'))).toBe(`/nowhere/${long}`);
  expect((await stat(join(into, 'empty'))).isDirectory()).toBe(true);
  expect(await stat(join(into, 'page'))).toMatchObject({ mode: 0o100751, mtimeMs: 1_700_000_000_000 });
});

it('says the size of what has more than 8 GiB', async () => {
  const path = join(directory, 'large');
  await writeFile(path, '');
  await truncate(path, 9 * 1024 ** 3); // a hole
  const archive = tarArchive(path, 'large');
  const { value } = await archive.next();
  await archive.return(undefined);
  const { stdout } = spawnSync('tar', ['-tvf', '-'], { input: value ?? Buffer.alloc(0) }); // it misses the rest
  expect(String(stdout)).toContain(String(9 * 1024 ** 3));
});

it('refuses what is no file', async () => {
  const server = createServer().listen(join(directory, 'socket'));
  await once(server, 'listening');
  try {
    await expect(unpacked(join(directory, 'socket'), 'x')).rejects.toThrow(
      'is not a file, a directory or a symbolic link',
    );
  } finally {
    server.close();
  }
});
