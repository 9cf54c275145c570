// Makes a guest's disk and seed. Each is there whole or not at all, and one that is there is kept: a repeated create
// must not take away what the guest wrote.

import { chmod, constants, copyFile, link, mkdir, rm, stat, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { gibibyte } from '../../../../base/bytes.ts';
import type { Clock } from '../../../../base/clock.ts';
import type { CachedImage } from '../../../images/image-cache.ts';
import { overlayArguments, runQemuImg } from '../../../images/qemu-img.ts';
import type { GuestSpec } from '../../driver.ts';
import { DriverError } from '../../../host/driver-error.ts';
import { guestFiles } from '../guest-files.ts';
import { putInPlace, writeWhole } from '../../../host/write-whole.ts';
import { isoImage } from './iso9660.ts';
import { seedFiles, type SeedInput } from './seed.ts';

const cloneTimeoutMs = 60_000; // writing an overlay's few tables takes milliseconds; this is for a hanging file system

/** A copy-on-write overlay of `image`, as large as asked for and never smaller than the image. */
export async function makeDisk(call: {
  readonly clock: Clock;
  readonly program: string;
  readonly directory: string;
  readonly image: CachedImage;
  readonly spec: Pick<GuestSpec, 'instanceId' | 'imageName' | 'diskGiB'>;
  readonly signal: AbortSignal;
}): Promise<void> {
  const path = join(call.directory, guestFiles.disk);
  if (await exists(path)) return;
  const temporary = `${path}.tmp`;
  await rm(temporary, { force: true });
  const sizeBytes = Math.max(call.image.virtualSizeBytes, call.spec.diskGiB * gibibyte);
  const what = `cannot clone image "${call.spec.imageName}" for ${call.spec.instanceId}`;
  const result = await runQemuImg(call.clock, {
    program: call.program,
    arguments: overlayArguments({ image: call.image, fileName: `${guestFiles.disk}.tmp`, sizeBytes }),
    workingDirectory: call.directory,
    timeoutMs: cloneTimeoutMs,
    signal: call.signal,
  });
  try {
    if (!result.ok) {
      if (result.reason === 'aborted') throw new DriverError('Aborted', `${what}: it was given up`);
      if (result.reason === 'missing') {
        throw new DriverError(
          'HypervisorFailed',
          `${what}: ${call.program} is not installed; install the package qemu-utils`,
        );
      }
      if (result.reason === 'timeout') {
        throw new DriverError(
          'Internal',
          `${what}: ${call.program} did not end within ${cloneTimeoutMs} ms; look at the disk below ${call.directory}`,
        );
      }
      // qemu-img has no code for it, and writes the error of a full disk in several ways: ask the file system too.
      if (/No space left|Disk quota exceeded/i.test(result.output) || (await isFull(call.directory))) {
        throw diskFull(what, call.directory);
      }
      throw new DriverError('ImageInvalid', `${what}: ${result.output}`);
    }
    await putInPlace(temporary, path); // qemu-img leaves the mode to the umask
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

/**
 * The same file under a second name, or a copy where that cannot be. Who runs the guest is given it, and no other user may read it. It never
 * changes, so that of an interrupted create is replaced by the same.
 */
export async function makeRunDisk(directory: string, from: string): Promise<void> {
  const path = join(directory, guestFiles.runDisk);
  const temporary = `${path}.tmp`;
  try {
    await rm(temporary, { force: true });
    await link(from, temporary).catch(() => copyFile(from, temporary, constants.COPYFILE_FICLONE)); // says why, if it cannot either
    await putInPlace(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

/** The NoCloud seed; only its guest and root may read it. */
export async function makeSeed(directory: string, seed: SeedInput): Promise<void> {
  await writeWhole(join(directory, guestFiles.seed), isoImage('cidata', seedFiles(seed)));
}

/** Disks and seeds hold what users keep secret: others may pass through it at most. */
export async function makeGuestDirectory(path: string, mode: DirectoryMode): Promise<void> {
  await mkdir(path, { recursive: true, mode });
  await chmod(path, mode); // one that is there already, and whatever the umask is
}

/** `0o711`: who knows a file's name, and may read that file, gets to it. */
export type DirectoryMode = 0o700 | 0o711;

export function diskFull(what: string, directory: string): DriverError {
  return new DriverError(
    'DiskFull',
    `${what}: no room is left below ${directory}; remove guests or images, or give the host more disk`,
  );
}

async function isFull(directory: string): Promise<boolean> {
  const { bavail, bsize } = await statfs(directory);
  return bavail * bsize < 1024 * 1024; // less than an empty overlay needs
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
