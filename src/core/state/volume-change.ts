// The change that sets a volume's status. All writers use it, so that the fields that must never fall never do.

import { assert } from '../../base/assert.ts';
import type { Volume, VolumeStatus } from '../../api/resources/volume.ts';
import type { Change } from './plan.ts';
import type { Entry } from './snapshot.ts';

export function volumeStatusChange(entry: Entry<Volume>, status: VolumeStatus): Change {
  const current = entry.value.status;
  assert(
    status.observedGeneration >= current.observedGeneration,
    () => `observedGeneration of ${entry.key} would fall`,
  );
  return { key: entry.key, ifRevision: entry.revision, value: { ...entry.value, status } };
}
