// A host for tests of volumes: real files in a temporary folder, written and read past the agent by QEMU's own tools. Used by tests only.

import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { systemClock } from '../../base/system.ts';
import type { VolumeTestHost } from './conformance.ts';
import { createHostVolumeFiles, type HostVolumeFilesOptions } from './files/host-volume-files.ts';
import type { VolumeFiles } from './files/volume-files.ts';

const run = promisify(execFile);

export interface RealVolumeHost extends VolumeTestHost {
  readonly directory: string;
  pathOf(volumeId: string): string;
  open(change?: Partial<HostVolumeFilesOptions>): VolumeFiles;
}

export async function makeRealVolumeHost(): Promise<RealVolumeHost> {
  const base = await realpath(await mkdtemp(join(tmpdir(), 'berth-volumes-')));
  const directory = join(base, 'a: host, with <spaces>'); // because users have them
  await mkdir(directory);
  const pathOf = (volumeId: string): string => join(directory, volumeId, 'disk.qcow2');
  return {
    directory,
    pathOf,
    open: (change = {}) => createHostVolumeFiles({ directory, directoryMode: 0o700, clock: systemClock, ...change }),
    write: (volumeId, letter) => writeLetter(pathOf(volumeId), letter),
    read: (volumeId) => readLetter(pathOf(volumeId)),
    async use(volumeId) {
      const holder = spawn('qemu-io', ['-f', 'qcow2', pathOf(volumeId)], { stdio: ['pipe', 'pipe', 'inherit'] });
      const ended = once(holder, 'exit');
      await once(holder.stdout, 'data'); // its prompt: it has the file open
      return async () => {
        holder.stdin.end('quit\n');
        await ended;
      };
    },
    dispose: () => rm(base, { recursive: true, force: true }),
  };
}

/** Into the first sectors of a volume that is not open. */
export async function writeLetter(path: string, letter: string): Promise<void> {
  await run('qemu-io', ['-f', 'qcow2', '-c', `write -P ${letter.charCodeAt(0)} 0 4096`, path]);
}

export async function readLetter(path: string): Promise<string> {
  const raw = `${path}.read`;
  await run('qemu-img', ['convert', '-f', 'qcow2', '-O', 'raw', path, raw]);
  const [byte = 0] = await readFile(raw);
  await rm(raw);
  return byte === 0 ? '' : String.fromCharCode(byte);
}
