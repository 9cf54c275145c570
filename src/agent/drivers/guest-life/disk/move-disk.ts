// The disk of a guest that moves between hosts: a copy-on-write file upon its image, whose bytes are copied as they are. On the new host it lies
// upon the same image of that host's cache.

import { link, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { CachedImage } from '../../../images/image-cache.ts';
import { hasExternalData, qcow2HeadBytes } from '../../../images/qcow2-header.ts';
import { runQemuImg } from '../../../images/qemu-img.ts';
import type { DiskReader, ReceivedFile } from '../../../migration/moved-files.ts';
import { openDisk } from '../../../migration/open-disk.ts';
import type { GuestMigration, GuestSpec } from '../../driver.ts';
import { DriverError } from '../../../host/driver-error.ts';
import { putInPlace } from '../../../host/write-whole.ts';
import { ownCredentials } from '../../own-credentials.ts';
import { noSuchGuest } from '../errors.ts';
import { guestFiles } from '../guest-files.ts';
import type { Hands } from '../hands.ts';
import { isDamaged } from '../records.ts';
import { checkId } from '../slots.ts';

/** A check reads all tables of a file: 2 GiB of them for 64 TiB. */
const limits = { cpuSeconds: 3600, memoryBytes: 4 * 1024 ** 3 };
const timeoutMs = 3_600_000;

export function migrationOf(hands: Hands): GuestMigration {
  return {
    openDisk: (instanceId) => openDiskOf(hands, instanceId),
    prepare: async (spec, signal) => void (await imageOf(hands, spec, signal)),
    async accept(spec, disk, signal) {
      const image = await imageOf(hands, spec, signal);
      const what = `cannot use the disk that was received for ${spec.instanceId}`;
      await layUpon(hands, { path: disk.path, image, what, signal });
      await runOn(hands, { path: disk.path, words: ['check', '-q', '-f', 'qcow2'], what, signal });
    },
  };
}

function imageOf({ images }: Hands, spec: GuestSpec, signal: AbortSignal): Promise<CachedImage> {
  return images.ensure(spec.imageName, spec.image, { signal, own: ownCredentials(spec) });
}

async function openDiskOf(hands: Hands, instanceId: string): Promise<DiskReader> {
  checkId(instanceId);
  const slot = hands.slots.get(instanceId);
  const record = slot?.record;
  if (slot === undefined || record === undefined) throw noSuchGuest('read the disk of', instanceId);
  if (slot.run !== undefined || isDamaged(record) || !record.created || record.removing)
    throw new DriverError('NotPossible', `cannot read the disk of ${instanceId}: its guest is not stopped`);
  return openDisk(join(await hands.directoryOf(instanceId), guestFiles.disk));
}

/** The disk of a new guest is this file, which stays where it is as well: a repeated creation finds it. */
export async function takeOverDisk(
  hands: Pick<Hands, 'clock' | 'qemuImg'>,
  call: {
    readonly directory: string;
    readonly image: CachedImage;
    readonly spec: Pick<GuestSpec, 'instanceId'>;
    readonly disk: ReceivedFile;
    readonly signal: AbortSignal;
  },
): Promise<void> {
  const { directory, image, spec, disk, signal } = call;
  const path = join(directory, guestFiles.disk);
  if (await exists(path)) return;
  const temporary = `${path}.tmp`;
  await rm(temporary, { force: true });
  const what = `cannot use the disk that was received for ${spec.instanceId}`;
  await layUpon(hands, { path: disk.path, image, what, signal });
  await link(disk.path, temporary);
  await putInPlace(temporary, path);
}

interface OnDisk {
  readonly path: string;
  readonly image: CachedImage;
  readonly what: string;
  readonly signal: AbortSignal;
}

/** Neither the data nor the image that it names may be any other file of this host. */
async function layUpon(hands: Pick<Hands, 'clock' | 'qemuImg'>, { path, image, what, signal }: OnDisk): Promise<void> {
  const reader = await openDisk(path);
  try {
    if (hasExternalData(Buffer.from(await reader.read(0, qcow2HeadBytes))))
      throw new DriverError('ImageInvalid', `${what}: it says that its data is in another file`);
  } finally {
    await reader.close();
  }
  const words = ['rebase', '-q', '-u', '-f', 'qcow2', '-F', image.format, '-b', image.path];
  await runOn(hands, { path, words, what, signal });
}

async function runOn(
  { clock, qemuImg }: Pick<Hands, 'clock' | 'qemuImg'>,
  call: {
    readonly path: string;
    readonly words: readonly string[];
    readonly what: string;
    readonly signal: AbortSignal;
  },
): Promise<void> {
  const { path, words, what, signal } = call;
  const result = await runQemuImg(clock, {
    program: qemuImg,
    arguments: [...words, basename(path)], // such a path has no colon, which qemu-img would take for a protocol
    workingDirectory: dirname(path),
    ...{ timeoutMs, limits, signal },
  });
  if (result.ok) return;
  if (result.reason === 'aborted') throw new DriverError('Aborted', `${what}: it was given up`);
  if (result.reason === 'missing')
    throw new DriverError('HypervisorFailed', `${what}: ${qemuImg} is not installed; install the package qemu-utils`);
  if (result.reason === 'timeout') throw new DriverError('Internal', `${what}: it took more than ${timeoutMs} ms`);
  throw new DriverError('ImageInvalid', `${what}: ${result.output}`);
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
