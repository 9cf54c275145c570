// A server whose disk is full is killed and started again: it serves what it has, and goes on by itself when there is room.

import { execFileSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync, rmSync, statSync, truncateSync, writeSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { freePort } from '../src/base/test-ports.ts';
import { createClient } from '../src/api/client/client.ts';
import { startBerth } from './processes.ts';

describe.skipIf(process.getuid?.() !== 0)('a server on a full disk (needs root to mount one)', () => {
  let directory: string;
  let disk: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'berth-full-'));
    disk = join(directory, 'disk');
    mkdirSync(disk);
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=4m', 'tmpfs', disk]);
  });
  afterEach(async () => {
    execFileSync('umount', [disk]);
    await rm(directory, { recursive: true, force: true });
  });

  it('starts again, serves reads, and writes when there is room', async () => {
    const listen = `127.0.0.1:${await freePort()}`;
    const data = join(disk, 'server');
    const start = () =>
      startBerth(['server', '--listen', listen, '--data-dir', data], /listens on/, {
        BERTH_SERVER_LEADER_LEASE_MS: '500', // so often a write is tried
        BERTH_SERVER_AUDIT_DIRECTORY: join(directory, 'audit'), // else its reserve has no room on this disk
      });
    const first = await start();
    const token = readFileSync(join(data, 'operator.token'), 'utf8').trim();
    const client = createClient({ fetch: (url, init) => fetch(url, init), url: `http://${listen}`, token });
    const create = (name: string) => client.create('image', { metadata: { name }, spec: { source: 'file:///a.img' } });
    await create('kept');
    const ballast = join(disk, 'ballast');
    fill(ballast);
    // Room for a log that cannot be moved into the file afterwards.
    truncateSync(ballast, statSync(ballast).size - 512 * 1024);
    await expect(fillStore(create)).resolves.toMatchObject({ code: 'StoreFull' });
    fill(join(disk, 'rest'));
    const before = await client.list('image');
    await first.kill();
    fill(join(disk, 'more'));

    const second = await start();
    try {
      expect((await client.list('image')).items).toEqual(before.items);
      await expect(create('too-much')).rejects.toMatchObject({ code: 'StoreFull' });
      for (const name of ['ballast', 'rest', 'more']) rmSync(join(disk, name));
      expect((await create('after')).metadata.name).toBe('after');
      await expect.poll(async () => (await fetch(`http://${listen}/readyz`)).status).toBe(200);
    } finally {
      await second.stop();
    }
  });
});

/** Until nothing more fits. */
function fill(path: string): void {
  const file = openSync(path, 'w');
  try {
    for (const bytes of [65_536, 4_096, 1]) while (writes(file, bytes));
  } finally {
    closeSync(file);
  }
}

function writes(file: number, bytes: number): boolean {
  try {
    return writeSync(file, Buffer.alloc(bytes)) > 0;
  } catch {
    return false; // ENOSPC
  }
}

/** Why the last one was refused. */
async function fillStore(create: (name: string) => Promise<unknown>): Promise<unknown> {
  for (let i = 0; ; i++) {
    try {
      await create(`image-${i}`);
    } catch (error) {
      return error;
    }
  }
}
