// The change that sets an instance's status. Control plane and reports use it, so that the fields that must never fall
// (incarnation, restart count, observedGeneration) never do.

import { assert } from '../../base/assert.ts';
import type { Instance, InstanceStatus } from '../../api/resources/instance.ts';
import type { Change } from './plan.ts';
import type { Entry } from './snapshot.ts';

export function instanceStatusChange(entry: Entry<Instance>, status: InstanceStatus): Change {
  const current = entry.value.status;
  assert(status.incarnation >= current.incarnation, () => `incarnation of ${entry.key} would fall`);
  assert(status.restartCount >= current.restartCount, () => `restart count of ${entry.key} would fall`);
  assert(
    status.observedGeneration >= current.observedGeneration,
    () => `observedGeneration of ${entry.key} would fall`,
  );
  return { key: entry.key, ifRevision: entry.revision, value: { ...entry.value, status } };
}
