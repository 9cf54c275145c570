// Takes one action of a volume's plan, and says what an action that failed means for the volume.

import { gibibyte } from '../../../base/bytes.ts';
import type { VolumeAssignment } from '../../../api/agent-protocol.ts';
import { describeError } from '../../../base/log.ts';
import { DriverError } from '../../host/driver-error.ts';
import type { Step } from '../../../base/concurrency/keyed-reconciler.ts';
import { VolumeError, type VolumeFiles } from '../files/volume-files.ts';
import type { Trouble, VolumeParts } from '../volume-parts.ts';
import type { VolumeAction } from '../volume-plan.ts';
import { changeVolume } from './change-volume.ts';
import { makeVolume } from './make-volume.ts';

/** `rest`: a guest has the volume, or is about to use it; the volume is looked at again afterwards. */
export async function takeVolumeAction(
  parts: VolumeParts,
  assignment: VolumeAssignment,
  { action, files }: { readonly action: VolumeAction; readonly files: VolumeFiles },
): Promise<Step> {
  const { volumeId, sizeGiB } = assignment;
  const sizeBytes = sizeGiB * gibibyte;
  switch (action.do) {
    case 'make':
      await makeVolume(parts, assignment, files);
      return 'go-on';
    case 'grow':
      return changeVolume(parts, volumeId, {
        by: (guest, instanceId) => guest.grow(instanceId, volumeId, sizeBytes),
        onFile: () => files.grow(volumeId, sizeBytes),
      });
    case 'make-snapshot':
    case 'remove-snapshot': {
      const { name } = action;
      const act = action.do === 'make-snapshot' ? 'make' : 'remove';
      return changeVolume(parts, volumeId, {
        by: (guest, instanceId) => guest.snapshot(instanceId, volumeId, act, name),
        onFile: () => files.snapshot(volumeId, act, name),
      });
    }
    case 'remove':
      return changeVolume(parts, volumeId, { onFile: () => files.remove(volumeId) });
  }
}

/** What cannot be done now, because of a guest, waits; what fails says why. */
export function troubleOf(action: VolumeAction, error: unknown): Trouble {
  const message = describeError(error);
  const byGuest = error instanceof DriverError && error.code !== 'DiskFull';
  if (byGuest || (error instanceof VolumeError && error.code === 'InUse'))
    return { code: waitsFor[action.do], message };
  const code = error instanceof VolumeError || error instanceof DriverError ? error.code : 'Internal';
  return { code, message };
}

const waitsFor: Readonly<Record<VolumeAction['do'], string>> = {
  make: 'Internal',
  grow: 'GrowWaits',
  'make-snapshot': 'SnapshotWaits',
  'remove-snapshot': 'SnapshotWaits',
  remove: 'RemovalWaits',
};
