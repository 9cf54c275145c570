// How many hosts a workload with one copy per host has: those that match its placement and take new instances. A host that is drained
// counts until its copy is to leave, which is last.

import type { InstanceSpec } from '../../api/resources/instance.ts';
import { isDraining, isReady } from '../state/conditions.ts';
import type { Snapshot } from '../state/snapshot.ts';
import type { Copy } from './copy.ts';

export function hostsFor(
  snapshot: Snapshot,
  { placement: { pool, hostLabels = {} } }: InstanceSpec,
  copies: readonly Copy[],
): number {
  const kept = new Set(
    copies.flatMap(({ host, evicted, leaving }) => (host === undefined || evicted || leaving ? [] : [host])),
  );
  let count = 0;
  for (const { value } of snapshot.list('host')) {
    const { metadata, spec, status } = value;
    if (spec.paused || status.outside !== undefined || !isReady(status)) continue;
    if (isDraining(value) && !kept.has(metadata.name)) continue;
    if (pool !== undefined && spec.pool !== pool) continue;
    if (Object.entries(hostLabels).every(([key, label]) => metadata.labels[key] === label)) count += 1;
  }
  return count;
}
