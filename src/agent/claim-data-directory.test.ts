import { cp, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock, systemPrng } from '../base/system.ts';
import { claimDataDirectory } from './claim-data-directory.ts';

describe('a claimed data directory', () => {
  let directory: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'berth-claim-'));
  });
  afterEach(() => rm(directory, { recursive: true }));
  const claim = (path = directory) => claimDataDirectory(path, { clock: systemClock, prng: systemPrng() });

  it('has the identity that it had, in a file that only its owner reads', async () => {
    const first = await claim();
    await first.release();
    const second = await claim();
    await second.release();
    expect(second.agentId).toBe(first.agentId);
    expect(await readFile(join(directory, 'agent-id'), 'utf8')).toBe(`${first.agentId}\n`);
    expect((await stat(join(directory, 'agent-id'))).mode & 0o777).toBe(0o600);
  });

  it('is not claimed beside a copy of it, and is free again when that has ended', async () => {
    const copy = await mkdtemp(join(tmpdir(), 'berth-claim-'));
    const first = await claim();
    await cp(directory, copy, { recursive: true });
    await expect(claim(copy)).rejects.toThrow(new RegExp(`a copy of it is running.*${first.agentId}`));
    await first.release();
    await (await claim(copy)).release();
    await rm(copy, { recursive: true });
  });

  it('is let go when its identity is damaged', async () => {
    await writeFile(join(directory, 'agent-id'), '');
    await expect(claim()).rejects.toThrow('cannot tell which agent this is');
    await rm(join(directory, 'agent-id'));
    await (await claim()).release();
  });
});
