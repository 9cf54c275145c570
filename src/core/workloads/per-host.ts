// How many copies a workload with one copy per host has: one for each host that matches its placement and takes new instances. A host that is
// drained, or tainted by now, counts while its copy is there.

import type { Workload } from '../../api/resources/workload.ts';
import { type Fleet, fleetOf } from '../scheduler/fleet.ts';
import type { HostPlugin, Rule } from '../scheduler/framework.ts';
import { controlPlane } from '../scheduler/plugins/control-plane.ts';
import { dedicated } from '../scheduler/plugins/dedicated.ts';
import { hostRules } from '../scheduler/plugins/host-rules.ts';
import { labels } from '../scheduler/plugins/labels.ts';
import { pool } from '../scheduler/plugins/pool.ts';
import { taints } from '../scheduler/plugins/taints.ts';
import { traits } from '../scheduler/plugins/providers/traits.ts';
import { type Request, requestOf } from '../scheduler/request.ts';
import { isDraining, isReady } from '../state/conditions.ts';
import type { Snapshot } from '../state/snapshot.ts';
import { asEvicted, type Copy } from './copy.ts';

interface PerHost {
  readonly wanted: number;
  /** Those on hosts that do not match any more are replaced as in a drain. */
  readonly copies: readonly Copy[];
}

/** What says whether a host is meant, whatever goes on there. */
const describing: readonly HostPlugin[] = [controlPlane, dedicated, pool, labels, hostRules, traits];

export function perHostOf(snapshot: Snapshot, { metadata, spec }: Workload, copies: readonly Copy[]): PerHost {
  const { template } = spec;
  const request = requestOf(snapshot, {
    metadata: { project: metadata.project, labels: template.labels },
    spec: template.spec,
  });
  const fleet = fleetOf(snapshot);
  const meant = new Test(request, fleet, describing);
  const tolerated = new Test(request, fleet, [taints]);
  const kept = new Set(
    copies.flatMap(({ host, evicted, leaving }) => (host === undefined || evicted || leaving ? [] : [host])),
  );
  let wanted = 0;
  for (const [slot, host] of fleet.hosts.entries()) {
    if (host === undefined || !meant.passes(slot)) continue;
    if (host.spec.paused || host.status.outside !== undefined || !isReady(host.status)) continue;
    const mayComeOrStay = kept.has(host.metadata.name) || (!isDraining(host) && tolerated.passes(slot));
    if (mayComeOrStay) wanted += 1;
  }
  const isStray = ({ host }: Copy): boolean => {
    const slot = host === undefined ? undefined : fleet.slotOf(host);
    return slot !== undefined && !meant.passes(slot);
  };
  return { wanted, copies: copies.map((copy) => (isStray(copy) ? asEvicted(copy) : copy)) };
}

class Test {
  readonly #rules: readonly Rule[];

  constructor(request: Request, fleet: Fleet, plugins: readonly HostPlugin[]) {
    this.#rules = plugins.flatMap((plugin) => plugin.prepare(request, fleet) ?? []);
  }

  passes(slot: number): boolean {
    return this.#rules.every(({ filter }) => !filter?.(slot));
  }
}
