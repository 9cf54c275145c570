// What qemu-img does to the files of volumes, in its jail. Every failure is a `VolumeError`.

import { statfs } from 'node:fs/promises';
import { basename, dirname, isAbsolute } from 'node:path';
import type { Clock } from '../../../base/clock.ts';
import { type JailLimits, runQemuImg } from '../../images/qemu-img.ts';
import { snapshotTag, VolumeError, type VolumeErrorCode } from './volume-files.ts';

/** Writes a few tables; the limit is for a hanging disk. */
const shortTimeoutMs = 60_000;
/** A terabyte at 150 MB/s. */
const copyTimeoutMs = 2 * 3_600_000;
const copyLimits: JailLimits = { cpuSeconds: 4 * 3600, memoryBytes: 2 * 1024 ** 3 };
/** Snapshots and growth write refcounts of the whole file: 2 GiB for 64 TiB. */
const changeLimits: JailLimits = { cpuSeconds: 600, memoryBytes: 4 * 1024 ** 3 };
const changeTimeoutMs = 600_000;

export interface VolumeQemuImgOptions {
  readonly clock: Clock;
  readonly program: string;
  /** The volumes' folder. Files are named relative to it: such a path has no colon, which qemu-img would take for a protocol. */
  readonly directory: string;
}

interface Call {
  /** Default: the folder of volumes. */
  readonly workingDirectory?: string;
  readonly limits: JailLimits;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

/** Every method takes what is attempted, for errors: "cannot grow volume vol_...". */
export class VolumeQemuImg {
  readonly #options: VolumeQemuImgOptions;

  constructor(options: VolumeQemuImgOptions) {
    this.#options = options;
  }

  /** `file`: below the folder of volumes, or anywhere as an absolute path. */
  create(
    what: string,
    file: string,
    { sizeBytes, signal }: { readonly sizeBytes: number; readonly signal: AbortSignal },
  ): Promise<void> {
    const [workingDirectory, name] = isAbsolute(file)
      ? [dirname(file), basename(file)]
      : [this.#options.directory, file];
    const words = ['create', '-q', '-f', 'qcow2', '-o', 'compat=1.1', name, String(sizeBytes)];
    return this.#run(what, words, { workingDirectory, limits: changeLimits, timeoutMs: shortTimeoutMs, signal });
  }

  /** Copies a snapshot of one file to another. */
  copy(
    what: string,
    copy: { readonly from: string; readonly snapshot: string; readonly to: string; readonly signal: AbortSignal },
  ): Promise<void> {
    const { from, snapshot, to, signal } = copy;
    // -U: a guest may have the source open; clusters of a snapshot are never rewritten while the snapshot exists.
    const words = ['convert', '-q', '-U', '-f', 'qcow2', '-O', 'qcow2', '-o', 'compat=1.1'];
    return this.#run(what, [...words, '-l', `snapshot.name=${snapshotTag(snapshot)}`, from, to], {
      limits: copyLimits,
      timeoutMs: copyTimeoutMs,
      signal,
    });
  }

  resize(what: string, file: string, sizeBytes: number): Promise<void> {
    return this.#run(what, ['resize', '-q', '-f', 'qcow2', file, String(sizeBytes)], {
      limits: changeLimits,
      timeoutMs: changeTimeoutMs,
    });
  }

  snapshot(
    what: string,
    file: string,
    { act, name }: { readonly act: 'make' | 'remove'; readonly name: string },
  ): Promise<void> {
    // This command takes the format only in the options of the image; ids contain no character with a meaning there.
    const image = `driver=qcow2,file.driver=file,file.filename=${file}`;
    const words = ['snapshot', '-q', '--image-opts', act === 'make' ? '-c' : '-d', snapshotTag(name), image];
    return this.#run(what, words, { limits: changeLimits, timeoutMs: changeTimeoutMs });
  }

  /** Throws `InUse` when a process has the file open: that process holds a lock which this command does not get. */
  assertUnused(what: string, file: string): Promise<void> {
    const words = ['info', '-f', 'qcow2', file];
    return this.#run(what, words, { limits: changeLimits, timeoutMs: shortTimeoutMs });
  }

  /** Of a file anywhere. */
  async check(path: string, signal: AbortSignal): Promise<boolean> {
    const { clock, program } = this.#options;
    const result = await runQemuImg(clock, {
      program,
      arguments: ['check', '-q', '-f', 'qcow2', basename(path)],
      workingDirectory: dirname(path),
      ...{ limits: changeLimits, timeoutMs: changeTimeoutMs, signal },
    });
    return result.ok;
  }

  async #run(what: string, words: readonly string[], call: Call): Promise<void> {
    const { clock, program, directory } = this.#options;
    const result = await runQemuImg(clock, { program, arguments: words, workingDirectory: directory, ...call });
    if (result.ok) return;
    const failed = (code: VolumeErrorCode, why: string): VolumeError => new VolumeError(code, `${what}: ${why}`);
    switch (result.reason) {
      case 'aborted':
        throw failed('Aborted', 'it was given up');
      case 'missing':
        throw failed('Internal', `${program} is not installed; install the package qemu-utils`);
      case 'timeout':
        throw failed(
          'Internal',
          `${program} did not end within ${call.timeoutMs} ms; look at the disk below ${directory}`,
        );
      case 'failed':
        if (/No space left|Disk quota exceeded/i.test(result.output) || (await isFull(directory)))
          throw failed('DiskFull', noRoom(directory));
        if (/\block\b/i.test(result.output)) throw failed('InUse', `somebody has its file open: ${result.output}`);
        throw failed('Internal', result.output);
    }
  }
}

export const noRoom = (directory: string): string =>
  `no room is left below ${directory}; remove guests, volumes or images, or give the host more disk`;

async function isFull(directory: string): Promise<boolean> {
  const { bavail, bsize } = await statfs(directory);
  return bavail * bsize < 1024 * 1024; // less than an empty volume needs
}
