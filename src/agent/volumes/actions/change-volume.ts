// Changes a volume: by the guest that has it open, or else on its file, which no guest gets meanwhile.

import type { GuestVolumes } from '../../drivers/driver.ts';
import { DriverError } from '../../host/driver-error.ts';
import type { Step } from '../../../base/concurrency/keyed-reconciler.ts';
import { holdersOf } from '../volume-holders.ts';
import type { VolumeParts } from '../volume-parts.ts';

export interface VolumeChange {
  /** Absent: the change waits until no guest has the volume. */
  readonly by?: (guest: GuestVolumes, instanceId: string) => Promise<void>;
  readonly onFile: () => Promise<void>;
}

/** `rest`: a guest has the volume, or is about to use it; the volume is looked at again afterwards. */
export async function changeVolume(parts: VolumeParts, volumeId: string, change: VolumeChange): Promise<Step> {
  const { claims, log } = parts;
  const owner = `the change of volume ${volumeId}`;
  const { holders, blind } = holdersOf(parts, volumeId);
  const user = holders.find(({ running }) => running);
  if (claims.take([volumeId], owner) !== undefined) return 'rest';
  try {
    if (blind !== undefined) return 'rest'; // looked at again when that driver sees its guests
    if (user === undefined) {
      if (change.by === undefined && holders.length > 0) return 'rest';
      await change.onFile();
    } else {
      if (change.by === undefined) return 'rest';
      if (user.volumes === undefined) {
        const message = `guest ${user.instanceId} may have it open, and its record, which would say so, is damaged`;
        throw new DriverError('NotPossible', message);
      }
      await change.by(user.volumes, user.instanceId);
    }
    log.info('changed a volume', { volume: volumeId });
  } finally {
    claims.release(owner);
  }
  return 'go-on';
}
