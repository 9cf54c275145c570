// Makes what a virtual machine boots from: its image in the cache, its disk, its seed. Each is there whole or not at all.

import type { ImageProgress } from '../../../images/image-cache.ts';
import { writeMetadata } from '../../../metadata/metadata-file.ts';
import { ownCredentials } from '../../own-credentials.ts';
import { DriverError } from '../../../host/driver-error.ts';
import { makeDisk, makeRunDisk, makeSeed } from './disk.ts';
import { takeOverDisk } from './move-disk.ts';
import { makeBootFiles } from '../boot/boot-files.ts';
import { bornAs, guestUuid, macAddress } from '../guest-files.ts';
import type { Hands } from '../hands.ts';
import type { MakeCall } from '../hypervisor.ts';

export async function makeFiles(
  { images, clock, qemuImg, vendorData: vendorDataOf, hypervisor }: Hands,
  { spec, directory, network, signal, timed, locally, onProgress, onImage }: MakeCall,
): Promise<void> {
  const { imageName } = spec;
  if (spec.image.architecture !== 'amd64') {
    throw new DriverError(
      'ImageInvalid',
      `cannot run image "${imageName}": it is for ${spec.image.architecture}, and this driver runs amd64`,
    );
  }
  const image = await timed('pull', `pulling ${imageName}`, () =>
    images.ensure(imageName, spec.image, {
      signal,
      own: ownCredentials(spec),
      onProgress: (progress) => onProgress(pullProgress(imageName, progress)),
    }),
  );
  await onImage({ digest: image.digest, image: { path: image.path, format: image.format } });
  const uuid = guestUuid(spec.instanceId, bornAs(spec));
  const { disk } = spec;
  await timed('clone', 'making the disk', () =>
    disk
      ? locally(() => takeOverDisk({ clock, qemuImg }, { directory, image, spec, disk, signal }))
      : hypervisor.makeDisk // the first of an image may fill a whole disk with it
        ? hypervisor.makeDisk({ directory, uuid, image, spec, signal })
        : locally(() => makeDisk({ clock, program: qemuImg, directory, image, spec, signal })),
  );
  if (spec.firmware !== undefined || spec.tpm) await makeBootFiles(directory, spec);
  const { runDisk } = spec;
  if (runDisk !== undefined)
    await timed('program', 'copying the program', () => locally(() => makeRunDisk(directory, runDisk)));
  const metadata = { ...spec, incarnation: bornAs(spec), vendorData: await vendorDataOf() };
  if (network?.kind === 'nat') await writeMetadata(directory, metadata);
  if (!spec.image.nocloud) return;
  const address = network?.macAddress ?? hypervisor.macAddress?.(uuid) ?? macAddress(uuid);
  await timed('seed', 'writing the seed', () => makeSeed(directory, { ...metadata, macAddress: address }));
}

function pullProgress(imageName: string, progress: ImageProgress): string {
  const verb = { downloading: 'pulling', unpacking: 'unpacking', checking: 'checking' }[progress.stage];
  const { doneBytes, totalBytes } = progress;
  const amount =
    totalBytes === undefined || totalBytes === 0
      ? `${Math.floor(doneBytes / 1_000_000)} MB`
      : `${Math.floor((100 * doneBytes) / totalBytes)} %`;
  return `${verb} ${imageName}: ${amount}`;
}
