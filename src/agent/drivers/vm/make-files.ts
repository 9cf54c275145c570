// Makes what a virtual machine boots from: its image in the cache, its disk, its seed. Each is there whole or not at all.

import type { ImageProgress } from '../../images/image-cache.ts';
import { DriverError } from '../driver.ts';
import { makeDisk, makeSeed } from './disk.ts';
import type { Hands } from './hands.ts';
import type { MakeCall } from './hypervisor.ts';
import type { Slot } from './slots.ts';

export async function makeFiles(hands: Hands, slot: Slot, { spec, signal, timed }: MakeCall): Promise<void> {
  if (spec.image.architecture !== 'amd64') {
    throw new DriverError(
      'ImageInvalid',
      `cannot run image "${spec.imageName}": it is for ${spec.image.architecture}, and this driver runs amd64`,
    );
  }
  const { slots, clock } = hands;
  const directory = await hands.directoryOf(spec.instanceId);
  const image = await timed('pull', `pulling ${spec.imageName}`, () =>
    hands.images.ensure(spec.imageName, spec.image, {
      signal,
      onProgress: (progress) => slots.setProgress(slot, pullProgress(spec.imageName, progress)),
    }),
  );
  await slots.save(slot, { imageDigest: image.digest });
  await timed('clone', 'making the disk', () =>
    makeDisk({ clock, program: hands.qemuImg, directory, image, spec, signal }),
  );
  const uuid = slot.record?.uuid;
  if (spec.image.nocloud && uuid !== undefined)
    await timed('seed', 'writing the seed', () => makeSeed(directory, spec, uuid));
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
