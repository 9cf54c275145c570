import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { lockDataDirectory } from './data-directory-lock.ts';

describe("the lock of an agent's data directory", () => {
  let directory: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'berth-lock-'));
  });
  afterEach(() => rm(directory, { recursive: true }));

  it('keeps a second agent out, and names the directory', async () => {
    const lock = await lockDataDirectory(directory);
    await expect(lockDataDirectory(directory)).rejects.toThrow(directory);
    await lock.release();
  });

  it('sees through another name of the same directory', async () => {
    const lock = await lockDataDirectory(directory);
    const alias = join(directory, 'alias');
    await symlink(directory, alias);
    await expect(lockDataDirectory(alias)).rejects.toThrow('another agent');
    await lock.release();
  });

  it('is free again after its release', async () => {
    await (await lockDataDirectory(directory)).release();
    await (await lockDataDirectory(directory)).release();
  });

  it('is free again after its holder was killed', async () => {
    const program = `import { lockDataDirectory } from ${JSON.stringify(join(import.meta.dirname, 'data-directory-lock.ts'))};
      await lockDataDirectory(${JSON.stringify(directory)}); console.log('held'); setInterval(() => {}, 1000);`;
    const holder = spawn(process.execPath, ['--input-type=module-typescript', '-e', program], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await once(holder.stdout, 'data');
    await expect(lockDataDirectory(directory)).rejects.toThrow('another agent');
    holder.kill('SIGKILL');
    await once(holder, 'exit');
    await (await lockDataDirectory(directory)).release();
  });
});
