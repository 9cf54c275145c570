// Makes the file of a volume, empty or as a copy of a snapshot.

import { gibibyte } from '../../../base/bytes.ts';
import type { VolumeAssignment } from '../../../api/agent-protocol.ts';
import type { VolumeFiles } from '../files/volume-files.ts';
import type { VolumeParts } from '../volume-parts.ts';

export async function makeVolume(parts: VolumeParts, assignment: VolumeAssignment, files: VolumeFiles): Promise<void> {
  const { volumeId, name, sizeGiB, source, format } = assignment;
  const { making, copies, looks, log } = parts;
  const abort = new AbortController();
  making.set(volumeId, abort);
  if (source !== undefined) copies.set(source.volumeId, (copies.get(source.volumeId) ?? 0) + 1);
  log.info('making a volume', { volume: volumeId, name, sizeGiB });
  try {
    const volume = {
      volumeId,
      sizeBytes: sizeGiB * gibibyte,
      ...(format ? { format } : {}),
      ...(source ? { source } : {}),
    };
    await files.make(volume, abort.signal);
  } finally {
    making.delete(volumeId);
    if (source !== undefined) {
      copies.set(source.volumeId, (copies.get(source.volumeId) ?? 1) - 1);
      if (looks.has(source.volumeId)) parts.again(source.volumeId); // it may have waited for the end of the copy
    }
  }
}
