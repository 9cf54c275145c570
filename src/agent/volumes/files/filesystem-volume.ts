// Volumes for containers: VOLUMES/<id>/disk.img, a raw file with an ext4 file system as large as the volume, which is its size limit. It is
// mounted at VOLUMES/<id>/mounted while a guest has it; snapshots are copies beside it. A file gets its name only when it is whole and durable.

import { constants } from 'node:fs';
import { type FileHandle, mkdir, open, readdir, readFile, realpath, rename, rm, rmdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type Clock, sleep } from '../../../base/clock.ts';
import { runTool } from '../../host/run-tool.ts';
import { sync } from '../../host/sync.ts';
import { type NewVolume, VolumeError, type VolumeLook } from './volume-files.ts';

export const filesystemFile = 'disk.img';
const unfinishedFile = 'disk.img.new';
const mountFolder = 'mounted';
/** The folder in the file system that containers see. Not the root: some programs refuse a folder with `lost+found` as not empty. */
const filesFolder = 'files';
const snapshotPrefix = 'snapshot-';
const snapshotSuffix = '.img';

const shortTimeoutMs = 60_000;
/** A check or a copy of a terabyte at 150 MB/s. */
const longTimeoutMs = 2 * 3_600_000;

/** The folder that containers see, while it is mounted. */
export function filesOf(folder: string): string {
  return join(folder, mountFolder, filesFolder);
}

/** Throws what `open` throws. */
export async function lookAtFilesystem(folder: string): Promise<VolumeLook> {
  const file = await open(
    join(folder, filesystemFile),
    constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK,
  );
  try {
    const sizeBytes = await filesystemBytes(file);
    if (sizeBytes === undefined) return { found: 'damage', why: 'it has no ext4 file system' };
    const snapshots = [];
    let usedBytes = (await file.stat()).blocks * 512;
    for (const entry of (await readdir(folder)).sort()) {
      if (!entry.startsWith(snapshotPrefix) || !entry.endsWith(snapshotSuffix)) continue;
      const { blocks, mtimeMs } = await stat(join(folder, entry));
      usedBytes += blocks * 512;
      const name = entry.slice(snapshotPrefix.length, -snapshotSuffix.length);
      snapshots.push({ name, createdAtMs: Math.floor(mtimeMs) });
    }
    return { found: 'volume', sizeBytes, usedBytes, snapshots, format: 'filesystem' };
  } finally {
    await file.close();
  }
}

/** The size in the superblock: a larger file holds no more until its file system has grown, too. */
async function filesystemBytes(file: FileHandle): Promise<number | undefined> {
  if (!(await file.stat()).isFile()) return undefined;
  const block = Buffer.alloc(1024);
  const { bytesRead } = await file.read(block, 0, block.length, 1024);
  if (bytesRead < block.length || block.readUInt16LE(56) !== 0xef53) return undefined;
  return block.readUInt32LE(4) * 1024 * 2 ** block.readUInt32LE(24);
}

/** The changes of one volume that no guest has open. Every function throws `VolumeError`. */
export class FilesystemVolume {
  readonly #clock: Clock;
  readonly #folder: string;
  readonly #path: string;

  constructor(clock: Clock, folder: string) {
    this.#clock = clock;
    this.#folder = folder;
    this.#path = join(folder, filesystemFile);
  }

  /** `from`: the folder of the volume to copy. */
  async make(
    what: string,
    { sizeBytes, source }: NewVolume,
    from: string | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    const unfinished = join(this.#folder, unfinishedFile);
    await rm(unfinished, { force: true });
    if (from !== undefined && source !== undefined) {
      await this.#copy(what, { from: snapshotPath(from, source.snapshot), to: unfinished, signal });
      await this.#growFile(what, unfinished, sizeBytes);
    } else await this.#format(what, unfinished, { sizeBytes, signal });
    if (signal.aborted) throw new VolumeError('Aborted', `${what}: it was given up`);
    await sync(unfinished, (file) => file.chmod(0o600));
    await rename(unfinished, this.#path);
    await sync(this.#folder);
  }

  async grow(what: string, sizeBytes: number): Promise<void> {
    await this.release(what);
    await this.#growFile(what, this.#path, sizeBytes);
    await sync(this.#path);
  }

  async snapshot(what: string, act: 'make' | 'remove', name: string): Promise<void> {
    const path = snapshotPath(this.#folder, name);
    if (act === 'remove') await rm(path, { force: true });
    else {
      await this.release(what);
      await this.#copy(what, { from: this.#path, to: `${path}.new` });
      await sync(`${path}.new`, (file) => file.chmod(0o600));
      await rename(`${path}.new`, path);
    }
    await sync(this.#folder);
  }

  /** Throws `InUse` while programs have files of it open. */
  async release(what: string): Promise<void> {
    await unmountVolume(this.#clock, this.#folder).catch((error: unknown) => {
      throw new VolumeError('InUse', `${what}: ${error instanceof Error ? error.message : String(error)}`, error);
    });
  }

  async #format(
    what: string,
    path: string,
    { sizeBytes, signal }: { readonly sizeBytes: number; readonly signal: AbortSignal },
  ): Promise<void> {
    const skeleton = join(this.#folder, 'skeleton');
    await rm(skeleton, { recursive: true, force: true });
    await mkdir(join(skeleton, filesFolder), { recursive: true });
    // Programs in containers run as any user, and only their instance can reach the volume.
    await sync(join(skeleton, filesFolder), (file) => file.chmod(0o777));
    await setSize(path, sizeBytes);
    const options = ['-q', '-F', '-m', '0', '-E', 'lazy_itable_init=1,lazy_journal_init=1,nodiscard', '-d', skeleton];
    await this.#run(what, 'mkfs.ext4', [...options, path], { timeoutMs: longTimeoutMs, signal });
    await rm(skeleton, { recursive: true, force: true });
  }

  /** Its file system is as large as its file afterwards. */
  async #growFile(what: string, path: string, sizeBytes: number): Promise<void> {
    if ((await stat(path)).size < sizeBytes) await setSize(path, sizeBytes);
    await this.#run(what, 'e2fsck', ['-f', '-p', path], { timeoutMs: longTimeoutMs, mayMend: true });
    await this.#run(what, 'resize2fs', [path], { timeoutMs: longTimeoutMs });
  }

  #copy(
    what: string,
    { from, to, signal }: { readonly from: string; readonly to: string; readonly signal?: AbortSignal },
  ): Promise<void> {
    const words = ['--reflink=auto', '--sparse=always', '--', from, to];
    return this.#run(what, 'cp', words, { timeoutMs: longTimeoutMs, ...(signal ? { signal } : {}) });
  }

  async #run(
    what: string,
    program: string,
    words: readonly string[],
    { timeoutMs, signal, mayMend = false }: { timeoutMs: number; signal?: AbortSignal; mayMend?: boolean },
  ): Promise<void> {
    const call = { program, arguments: words, timeoutMs, ...(signal ? { signal } : {}) };
    const result = await runTool(this.#clock, call);
    // e2fsck: 1 means that it has mended something.
    if (result.ok || (mayMend && result.exitCode === 1)) return;
    if (result.reason === 'aborted') throw new VolumeError('Aborted', `${what}: it was given up`);
    const full = /no space left|disk quota exceeded/i.test(result.output);
    const missing = result.reason === 'missing' ? '; install e2fsprogs on the host' : '';
    throw new VolumeError(full ? 'DiskFull' : 'Internal', `${what}: ${program}: ${result.output}${missing}`);
  }
}

function snapshotPath(folder: string, name: string): string {
  return join(folder, `${snapshotPrefix}${name}${snapshotSuffix}`);
}

async function setSize(path: string, sizeBytes: number): Promise<void> {
  const file = await open(path, constants.O_WRONLY | constants.O_CREAT | constants.O_NOFOLLOW, 0o600);
  try {
    await file.truncate(sizeBytes);
  } finally {
    await file.close();
  }
}

/** Remounts it with the given options. Throws an `Error` with the output of the tool. */
export async function mountVolume(
  clock: Clock,
  folder: string,
  { readOnly }: { readonly readOnly: boolean },
): Promise<void> {
  await unmountHere(clock, folder);
  // If it is still mounted elsewhere, `mount` uses the existing loop device, and therefore the same file system.
  await detached(clock, folder);
  const at = join(folder, mountFolder);
  await mkdir(at, { recursive: true, mode: 0o700 });
  const options = `loop,nosuid,nodev${readOnly ? ',ro' : ''}`;
  const words = ['-t', 'ext4', '-o', options, join(folder, filesystemFile), at];
  const result = await runTool(clock, { program: 'mount', arguments: words, timeoutMs: shortTimeoutMs });
  if (!result.ok) throw new Error(`cannot mount ${folder}: ${result.output}`);
  // Programs of the host do not need access; containers see the folder below.
  if (!readOnly) await sync(at, (file) => file.chmod(0o700));
}

/**
 * Unmounts it, so that its file is complete and unused. Does nothing when it is not mounted. Throws an `Error` when files of it are open, or
 * when it is mounted in another mount namespace, for example of a container that is ending.
 */
export async function unmountVolume(clock: Clock, folder: string): Promise<void> {
  await unmountHere(clock, folder);
  if (!(await detached(clock, folder)))
    throw new Error(
      `${join(folder, filesystemFile)} is still mounted in another mount namespace, by a process that is still running`,
    );
}

/** In the mount namespace of the agent. */
async function unmountHere(clock: Clock, folder: string): Promise<void> {
  const at = join(folder, mountFolder);
  while (await isMounted(at)) {
    const result = await runTool(clock, { program: 'umount', arguments: [at], timeoutMs: shortTimeoutMs });
    if (!result.ok) throw new Error(`cannot unmount ${at}: ${result.output}`);
  }
  await rmdir(at).catch(() => {}); // it is not there
}

const detachesWithinMs = 3_000;
const detachPollMs = 20;

/** Waits until no mount namespace has it mounted; false: some still has. Polls for the loop device, because the kernel has no event for its end. */
async function detached(clock: Clock, folder: string): Promise<boolean> {
  const call = { program: 'losetup', arguments: ['-j', join(folder, filesystemFile)], timeoutMs: shortTimeoutMs };
  const endMs = clock.monotonicMs() + detachesWithinMs;
  for (;;) {
    const result = await runTool(clock, call);
    if (!result.ok) throw new Error(`cannot see whether ${folder} is mounted: ${result.output}`);
    if (result.output.trim() === '') return true;
    if (clock.monotonicMs() > endMs) return false;
    await sleep(clock, detachPollMs);
  }
}

async function isMounted(path: string): Promise<boolean> {
  // proc(5): white space and backslashes are octal in it.
  const real = await realpath(path).catch(() => path); // it is not there
  const written = real.replaceAll(/[\s\\]/g, (each) => `\\${each.charCodeAt(0).toString(8).padStart(3, '0')}`);
  const lines = (await readFile('/proc/self/mountinfo', 'utf8')).split('\n');
  return lines.some((line) => line.split(' ')[4] === written);
}
