// taints: a tainted host takes only instances that tolerate its taints. NoSchedule refuses; PreferNoSchedule makes the
// host the last choice.

import type { Taint, Toleration } from '../../../api/resources/host-rules.ts';
import type { Host } from '../../../api/resources/host.ts';
import { type HostPlugin, refuse } from '../framework.ts';

export const taints: HostPlugin = {
  name: 'taints',
  summary: "the instance tolerates the host's taints",
  dependsOn: 'host',
  prepare: ({ terms }, { hosts }) => ({
    filter(slot) {
      const taint = untolerated(hosts[slot], 'NoSchedule', terms.tolerations);
      return taint
        ? refuse('HostTainted', () => `it has the taint ${taintText(taint)}, which the instance does not tolerate`)
        : null;
    },
  }),
};

export const softTaints: HostPlugin = {
  name: 'soft-taints',
  summary: 'hosts with an untolerated soft taint come last',
  dependsOn: 'host',
  prepare({ terms }, fleet) {
    if (fleet.softTaints === 0) return null; // the fleet's layout changes with the first such taint
    return { score: (slot) => (untolerated(fleet.hosts[slot], 'PreferNoSchedule', terms.tolerations) ? 0 : 100) };
  },
};

function untolerated(
  host: Host | undefined,
  effect: Taint['effect'],
  tolerations: readonly Toleration[] | undefined,
): Taint | undefined {
  return host?.spec.taints?.find(
    (taint) => taint.effect === effect && !tolerations?.some((toleration) => tolerates(toleration, taint)),
  );
}

function tolerates({ key, value, effect }: Toleration, taint: Taint): boolean {
  return (
    (key === undefined || key === taint.key) &&
    (value === undefined || value === (taint.value ?? '')) &&
    (effect === undefined || effect === taint.effect)
  );
}

/** `key=value:NoSchedule`, as users write it. */
function taintText({ key, value, effect }: Taint): string {
  return `${key}${value === undefined ? '' : `=${value}`}:${effect}`;
}
