// Moves of fake guests: the disk of one is how often it has booted.

import type { ImageCache } from '../../images/image-cache.ts';
import { readerOf } from '../../migration/memory-incoming-files.ts';
import type { ReceivedFile } from '../../migration/moved-files.ts';
import { DriverError } from '../../host/driver-error.ts';
import type { GuestMigration } from '../driver.ts';
import { ownCredentials } from '../own-credentials.ts';
import type { Hands } from './hands.ts';

export function guestMigration(hands: Hands, images: ImageCache | undefined): GuestMigration {
  return {
    async openDisk(instanceId) {
      const guest = hands.intact('read the disk of', instanceId);
      if (guest.running || !guest.created)
        throw new DriverError('NotPossible', `cannot read the disk of ${instanceId}: its guest is not stopped`);
      return readerOf(new TextEncoder().encode(JSON.stringify({ boots: guest.boots })));
    },
    async prepare(spec, signal) {
      await images?.ensure(spec.imageName, spec.image, { signal, own: ownCredentials(spec) });
      hands.throwIfClosed(spec.instanceId);
      hands.world.notePulled(hands.host, spec.imageName);
    },
    async accept(spec, disk) {
      if ((await bootsOn(disk)) === undefined)
        throw new DriverError('ImageInvalid', `the disk that was received for ${spec.instanceId} is damaged`);
    },
  };
}

/** Undefined: it is no disk of a fake guest. */
export async function bootsOn(disk: ReceivedFile): Promise<number | undefined> {
  const { boots }: { boots?: unknown } = JSON.parse(new TextDecoder().decode(await disk.bytes()));
  return typeof boots === 'number' ? boots : undefined;
}
