// The change that gives an instance another status. Control plane and reports go through here, so that what must never fall
// (incarnation, restart count, observedGeneration) never does.

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
