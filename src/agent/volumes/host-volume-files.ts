// Volumes as qcow2 files of this host, a folder each: VOLUMES/<id>/disk.qcow2. A file has its name only when it is whole and on disk, so
// whoever dies in between leaves something under another name, which is cleared away. qemu-img makes every change, in its jail.

import { mkdir, open, readdir, rename, rm, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../base/clock.ts';
import { describeError } from '../../base/log.ts';
import { type JailLimits, runQemuImg } from '../images/qemu-img.ts';
import { lookAtQcow2 } from './qcow2-volume.ts';
import {
  type NewVolume,
  snapshotTag,
  VolumeError,
  type VolumeErrorCode,
  type VolumeFiles,
  volumeIdPattern,
} from './volume-files.ts';

export interface HostVolumeFilesOptions {
  /** Volumes' alone. */
  readonly directory: string;
  /** Of it and of the volumes' folders: 0o711 where guests run as another user. */
  readonly directoryMode: 0o700 | 0o711;
  readonly clock: Clock;
  readonly qemuImgProgram?: string;
}

const diskFile = 'disk.qcow2';
const unfinishedFile = 'disk.qcow2.new';
/** A few tables are written; this is for a hanging disk. */
const shortTimeoutMs = 60_000;
/** A terabyte at 150 MB/s. */
const copyTimeoutMs = 2 * 3_600_000;
const copyLimits: JailLimits = { cpuSeconds: 4 * 3600, memoryBytes: 2 * 1024 ** 3 };
/** Snapshots and growth write refcounts of the whole file: of 64 TiB 2 GiB. */
const changeLimits: JailLimits = { cpuSeconds: 600, memoryBytes: 4 * 1024 ** 3 };
const changeTimeoutMs = 600_000;

export function createHostVolumeFiles(options: HostVolumeFilesOptions): VolumeFiles {
  const { directory, directoryMode, clock, qemuImgProgram: program = 'qemu-img' } = options;
  const folderOf = (volumeId: string): string => {
    if (!volumeIdPattern.test(volumeId)) throw new VolumeError('Internal', `"${volumeId}" is not a volume's id`);
    return join(directory, volumeId);
  };
  const pathOf = (volumeId: string): string => join(folderOf(volumeId), diskFile);

  const look: VolumeFiles['look'] = async (volumeId) => {
    try {
      return await lookAtQcow2(pathOf(volumeId));
    } catch (error) {
      if (codeOf(error) === 'ELOOP') return { found: 'damage', why: 'it is a symbolic link' };
      if (codeOf(error) !== 'ENOENT') throw error;
    }
    const left = await readdir(folderOf(volumeId)).catch((error: unknown) => {
      if (codeOf(error) === 'ENOENT') return undefined;
      throw error;
    });
    return { found: left === undefined ? 'nothing' : 'unfinished' };
  };

  const qemuImg = async (
    what: string,
    words: readonly string[],
    call: { readonly limits: JailLimits; readonly timeoutMs: number; readonly signal?: AbortSignal },
  ): Promise<void> => {
    // In the volumes' folder: a path that begins with an id has no colon, which qemu-img would take for a protocol.
    const result = await runQemuImg(clock, { program, arguments: words, workingDirectory: directory, ...call });
    if (result.ok) return;
    const failed = (code: VolumeErrorCode, why: string): VolumeError => new VolumeError(code, `${what}: ${why}`);
    if (result.reason === 'aborted') throw failed('Aborted', 'it was given up');
    if (result.reason === 'missing')
      throw failed('Internal', `${program} is not installed; install the package qemu-utils`);
    if (result.reason === 'timeout')
      throw failed(
        'Internal',
        `${program} did not end within ${call.timeoutMs} ms; look at the disk below ${directory}`,
      );
    if (/No space left|Disk quota exceeded/i.test(result.output) || (await isFull(directory)))
      throw failed('DiskFull', noRoom(directory));
    if (/\block\b/i.test(result.output)) throw failed('InUse', `somebody has its file open: ${result.output}`);
    throw failed('Internal', result.output);
  };

  const make = async ({ volumeId, sizeBytes, source }: NewVolume, signal: AbortSignal): Promise<void> => {
    const folder = folderOf(volumeId);
    await mkdir(folder, { recursive: true, mode: directoryMode });
    await rm(join(folder, unfinishedFile), { recursive: true, force: true });
    const file = `${volumeId}/${unfinishedFile}`;
    const what = `cannot make volume ${volumeId}`;
    try {
      if (source === undefined) {
        await qemuImg(what, ['create', '-q', '-f', 'qcow2', '-o', 'compat=1.1', file, String(sizeBytes)], {
          limits: changeLimits,
          timeoutMs: shortTimeoutMs,
          signal,
        });
      } else {
        await copy(what, { from: source, to: file, signal });
        const copied = await lookAtQcow2(join(folder, unfinishedFile));
        if (copied.found === 'volume' && copied.sizeBytes < sizeBytes) await resize(what, file, sizeBytes);
      }
      const made = await open(join(folder, unfinishedFile), 'r');
      try {
        await made.chmod(0o600); // qemu-img leaves it to the umask
        await made.sync();
      } finally {
        await made.close();
      }
      if (signal.aborted) throw new VolumeError('Aborted', `${what}: it was given up`);
      await rename(join(folder, unfinishedFile), join(folder, diskFile));
      await syncFolder(folder);
      await syncFolder(directory);
    } catch (error) {
      await rm(join(folder, unfinishedFile), { force: true }).catch(() => {}); // the next try clears it away
      throw error;
    }
  };

  const copy = async (
    what: string,
    {
      from,
      to,
      signal,
    }: { readonly from: NonNullable<NewVolume['source']>; readonly to: string; readonly signal: AbortSignal },
  ): Promise<void> => {
    const origin = await look(from.volumeId);
    if (origin.found === 'damage')
      throw new VolumeError('SourceMissing', `${what}: volume ${from.volumeId} cannot be read: ${origin.why}`);
    const has = origin.found === 'volume' && origin.snapshots.some(({ name }) => name === from.snapshot);
    if (!has) {
      const missing = `there is no snapshot "${from.snapshot}" of volume ${from.volumeId} on this host`;
      throw new VolumeError('SourceMissing', `${what}: ${missing}`);
    }
    // -U: a guest may have the source open; what a snapshot refers to is never written again while the snapshot is there.
    const words = ['convert', '-q', '-U', '-f', 'qcow2', '-O', 'qcow2', '-o', 'compat=1.1'];
    const snapshot = `snapshot.name=${snapshotTag(from.snapshot)}`;
    await qemuImg(what, [...words, '-l', snapshot, `${from.volumeId}/${diskFile}`, to], {
      limits: copyLimits,
      timeoutMs: copyTimeoutMs,
      signal,
    });
  };

  const resize = (what: string, file: string, sizeBytes: number): Promise<void> =>
    qemuImg(what, ['resize', '-q', '-f', 'qcow2', file, String(sizeBytes)], {
      limits: changeLimits,
      timeoutMs: changeTimeoutMs,
    });

  /** What qemu-img wrote may still be on its way to the disk. */
  const sync = async (volumeId: string): Promise<void> => {
    const file = await open(pathOf(volumeId), 'r');
    try {
      await file.sync();
    } finally {
      await file.close();
    }
  };

  return {
    pathOf,
    look,
    async list() {
      const names = await asVolumeError('list the volumes', readdir(directory)).catch((error: unknown) => {
        if (error instanceof VolumeError && codeOf(error.cause) === 'ENOENT') return [];
        throw error;
      });
      return names.filter((name) => volumeIdPattern.test(name)).sort();
    },
    async make(volume, signal) {
      const what = `make volume ${volume.volumeId}`;
      const before = await asVolumeError(what, look(volume.volumeId));
      if (before.found === 'volume' || before.found === 'damage') return;
      await asVolumeError(what, make(volume, signal));
    },
    async grow(volumeId, sizeBytes) {
      const what = `grow volume ${volumeId}`;
      const before = await asVolumeError(what, look(volumeId));
      if (before.found === 'volume' && before.sizeBytes >= sizeBytes) return;
      await asVolumeError(what, resize(`cannot ${what}`, `${volumeId}/${diskFile}`, sizeBytes));
      await asVolumeError(what, sync(volumeId));
    },
    async snapshot(volumeId, act, name) {
      const what = `${act} snapshot "${name}" of volume ${volumeId}`;
      const before = await asVolumeError(what, look(volumeId));
      const there = before.found === 'volume' && before.snapshots.some((each) => each.name === name);
      if (there === (act === 'make')) return;
      // This command takes the format in the options of the image alone; ids hold nothing that means anything there.
      const image = `driver=qcow2,file.driver=file,file.filename=${volumeId}/${diskFile}`;
      const words = ['snapshot', '-q', '--image-opts', act === 'make' ? '-c' : '-d', snapshotTag(name), image];
      await asVolumeError(what, qemuImg(`cannot ${what}`, words, { limits: changeLimits, timeoutMs: changeTimeoutMs }));
      await asVolumeError(what, sync(volumeId));
    },
    async remove(volumeId) {
      const what = `remove volume ${volumeId}`;
      const before = await asVolumeError(what, look(volumeId));
      // Whoever has it open holds a lock that this does not get.
      if (before.found === 'volume') {
        const words = ['info', '-f', 'qcow2', `${volumeId}/${diskFile}`];
        await asVolumeError(
          what,
          qemuImg(`cannot ${what}`, words, { limits: changeLimits, timeoutMs: shortTimeoutMs }),
        );
      }
      await asVolumeError(what, rm(folderOf(volumeId), { recursive: true, force: true }));
      if (before.found !== 'nothing') await asVolumeError(what, syncFolder(directory));
    },
  };

  /** Every failure as a `VolumeError`. */
  async function asVolumeError<Result>(what: string, act: Promise<Result>): Promise<Result> {
    try {
      return await act;
    } catch (error) {
      if (error instanceof VolumeError) throw error;
      const full = codeOf(error) === 'ENOSPC' || codeOf(error) === 'EDQUOT';
      const why = full ? noRoom(directory) : describeError(error);
      throw new VolumeError(full ? 'DiskFull' : 'Internal', `cannot ${what}: ${why}`, error);
    }
  }
}

const noRoom = (directory: string): string =>
  `no room is left below ${directory}; remove guests, volumes or images, or give the host more disk`;

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}

async function isFull(directory: string): Promise<boolean> {
  const { bavail, bsize } = await statfs(directory);
  return bavail * bsize < 1024 * 1024; // less than an empty volume needs
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
