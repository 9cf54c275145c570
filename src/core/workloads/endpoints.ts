// Where the copies of a workload that are ready are reached.

import type { Workload } from '../../api/resources/workload.ts';
import type { Endpoint } from '../../api/routes/workloads.ts';
import { keys } from '../state/keys.ts';
import type { Snapshot } from '../state/snapshot.ts';
import { instancesOf } from '../state/views/workload-copies.ts';
import { copyOf } from './copy.ts';

/** By ordinal. */
export function endpointsOf(snapshot: Snapshot, { metadata }: Workload): readonly Endpoint[] {
  const endpoints: Endpoint[] = [];
  for (const entry of instancesOf(snapshot, metadata.id)) {
    const { ready, leaving, ordinal, host } = copyOf(snapshot, entry);
    if (!ready || leaving || host === undefined) continue;
    const { guest } = entry.value.status;
    const hostAddress = snapshot.get('host', keys.host(host))?.value.status.outside?.ip;
    endpoints.push({
      instance: entry.value.metadata.name,
      ordinal,
      host,
      ...(guest?.address === undefined ? {} : { address: guest.address }),
      ...(hostAddress === undefined ? {} : { hostAddress }),
      ports: guest?.ports ?? [],
    });
  }
  return endpoints.toSorted((a, b) => a.ordinal - b.ordinal || (a.instance < b.instance ? -1 : 1));
}
