// How many hosts a workload with one copy per host has: those that match its placement and take new instances.

import type { InstanceSpec } from '../../api/resources/instance.ts';
import { isReady } from '../state/conditions.ts';
import type { Snapshot } from '../state/snapshot.ts';

export function hostsFor(snapshot: Snapshot, { placement: { pool, hostLabels = {} } }: InstanceSpec): number {
  let count = 0;
  for (const { value } of snapshot.list('host')) {
    const { metadata, spec, status } = value;
    if (spec.paused || status.outside !== undefined || !isReady(status)) continue;
    if (pool !== undefined && spec.pool !== pool) continue;
    if (Object.entries(hostLabels).every(([key, label]) => metadata.labels[key] === label)) count += 1;
  }
  return count;
}
