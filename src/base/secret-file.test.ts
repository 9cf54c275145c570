import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { adviceOnSecretFile } from './system.ts';

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-secret-'));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

it.each([
  ['its owner alone', 0o600, false],
  ['its owner alone, who may not write it', 0o400, false],
  ['a group', 0o640, true],
  ['everyone', 0o644, true],
])('a file for %s: advice %s', async (_, mode, advised) => {
  const path = join(directory, 'token');
  await writeFile(path, 'secret');
  await chmod(path, mode);
  expect(await adviceOnSecretFile(path)).toBe(
    advised ? `other users of this machine may read ${path}: chmod 600 ${path}` : undefined,
  );
});

it('gives no advice on what is not there, or no file', async () => {
  expect(await adviceOnSecretFile(join(directory, 'nothing'))).toBeUndefined();
  expect(await adviceOnSecretFile(directory)).toBeUndefined();
});
