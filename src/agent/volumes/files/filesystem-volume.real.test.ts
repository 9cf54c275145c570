// Volumes with a file system on the disk of this host: made, copied, grown, mounted and removed with the real tools.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { mkdir, open, readdir, readFile, truncate, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { system, systemClock } from '../../../base/system.ts';
import { makeRealVolumeHost, type RealVolumeHost } from '../test-volume-host.ts';
import { filesOf, mountVolume, unmountVolume } from './filesystem-volume.ts';
import type { VolumeFiles } from './volume-files.ts';

const id = `vol_${'0'.repeat(25)}1`;
const copy = `vol_${'0'.repeat(25)}2`;
const never = new AbortController().signal;
const mebibyte = 1024 * 1024;
const isRoot = system.userId() === 0;

describe.skipIf(!isRoot)(`volumes with a file system${isRoot ? '' : ' (only root may mount them)'}`, () => {
  let host: RealVolumeHost;
  let files: VolumeFiles;
  let folder: string;
  beforeEach(async () => {
    host = await makeRealVolumeHost();
    files = host.open();
    folder = dirname(files.pathOf(id, 'filesystem'));
    await files.make({ volumeId: id, sizeBytes: 16 * mebibyte, format: 'filesystem' }, never);
  });
  afterEach(async () => {
    await unmountVolume(systemClock, folder);
    await host.dispose();
  });

  const mount = (volumeId = id, readOnly = false) =>
    mountVolume(systemClock, dirname(files.pathOf(volumeId, 'filesystem')), { readOnly });
  const at = (name: string, volumeId = id) => join(filesOf(dirname(files.pathOf(volumeId, 'filesystem'))), name);

  it('are found with their size, grow, and keep what is in them', async () => {
    await mount();
    await writeFile(at('a'), 'kept');
    await files.grow(id, 32 * mebibyte); // unmounts it
    expect(await files.look(id)).toMatchObject({ found: 'volume', format: 'filesystem', sizeBytes: 32 * mebibyte });
    await mount();
    expect(await readFile(at('a'), 'utf8')).toBe('kept');
  });

  it('have snapshots, of which others are made, and their size is a limit', async () => {
    await mount();
    await writeFile(at('a'), 'before');
    await files.snapshot(id, 'make', 'first');
    await mount();
    await writeFile(at('a'), 'after');
    const source = { volumeId: id, snapshot: 'first' };
    await files.make({ volumeId: copy, sizeBytes: 24 * mebibyte, format: 'filesystem', source }, never);
    await mount(copy);
    expect(await readFile(at('a', copy), 'utf8')).toBe('before');
    await expect(writeFile(at('b', copy), Buffer.alloc(25 * mebibyte))).rejects.toThrow('ENOSPC');
    await files.remove(copy);
    await files.snapshot(id, 'remove', 'first');
    expect(await files.look(id)).toMatchObject({ snapshots: [] });
    expect(await files.list()).toEqual([id]);
  });

  it('are neither changed nor removed while programs have their files open', async () => {
    await mount();
    const held = await open(at('a'), 'w');
    await expect(files.grow(id, 32 * mebibyte)).rejects.toMatchObject({ code: 'InUse' });
    await expect(files.snapshot(id, 'make', 'first')).rejects.toMatchObject({ code: 'InUse' });
    await expect(files.remove(id)).rejects.toMatchObject({ code: 'InUse' });
    await held.close();
    await files.remove(id);
    expect(await readdir(host.directory)).toEqual([]);
  });

  it('are not changed while another mount namespace has them, and have then what was written there', async () => {
    await mount();
    const seen = join(dirname(host.directory), 'seen'); // as a container has it
    await mkdir(seen);
    const line = 'mount --bind "$1" "$2"; echo ready; read -r go; echo late > "$2/a"; echo written; read -r go';
    const words = ['--mount', '--propagation', 'private', 'sh', '-c', line, 'sh', at(''), seen];
    const other = spawn('unshare', words, { stdio: ['pipe', 'pipe', 'inherit'] });
    const lines = createInterface(other.stdout)[Symbol.asyncIterator]();
    expect((await lines.next()).value).toBe('ready');
    await expect(unmountVolume(systemClock, folder)).rejects.toThrow('another mount namespace');
    other.stdin.write('\n');
    expect((await lines.next()).value).toBe('written');
    await expect(files.snapshot(id, 'make', 'first')).rejects.toMatchObject({ code: 'InUse' });
    const ended = once(other, 'exit');
    other.stdin.end('\n');
    await ended;
    await files.snapshot(id, 'make', 'first');
    const source = { volumeId: id, snapshot: 'first' };
    await files.make({ volumeId: copy, sizeBytes: 16 * mebibyte, format: 'filesystem', source }, never);
    await mount(copy);
    expect(await readFile(at('a', copy), 'utf8')).toBe('late\n');
    await files.remove(copy);
  });

  it('are read-only where that is asked for', async () => {
    await mount(id, true);
    await expect(writeFile(at('a'), 'no')).rejects.toThrow('EROFS');
  });

  it('that were interrupted while they grew grow to the end, and what is no file system is damage', async () => {
    await truncate(files.pathOf(id, 'filesystem'), 32 * mebibyte);
    expect(await files.look(id)).toMatchObject({ sizeBytes: 16 * mebibyte });
    await files.grow(id, 32 * mebibyte);
    expect(await files.look(id)).toMatchObject({ sizeBytes: 32 * mebibyte });
    await writeFile(files.pathOf(id, 'filesystem'), 'nothing');
    expect(await files.look(id)).toMatchObject({ found: 'damage' });
  });
});
