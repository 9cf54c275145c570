// Rules: which instances a host takes, as operators set it, and where tenants want their instances, drawn each time. Some host satisfies
// most of these wishes; an instance that no host satisfies waits, with a reason.

import type { Prng } from '../base/prng.ts';
import type { HostSpec } from '../api/resources/host.ts';
import type { InstanceSpec } from '../api/resources/instance.ts';
import type { Labels } from '../api/resources/metadata.ts';

const taintKey = 'reserved';
const zones = ['a', 'b'];

/** The rest of the spec stays as it is. About half of the hosts take every instance. */
export function drawHostRules(
  prng: Prng,
  { taints: _taints, dedicated: _dedicated, dedicatedTo: _owner, instancesMax: _max, ...rest }: HostSpec,
  projects: readonly string[],
): HostSpec {
  switch (prng.below(8)) {
    case 0:
      return { ...rest, taints: [{ key: taintKey, effect: 'NoSchedule' }] };
    case 1:
      return { ...rest, taints: [{ key: taintKey, value: 'soon', effect: 'PreferNoSchedule' }] };
    case 2:
      return { ...rest, instancesMax: prng.below(5) };
    case 3: {
      const owner = projects[prng.below(projects.length)] ?? 'default';
      return prng.chance(2, 3) ? { ...rest, dedicatedTo: owner } : { ...rest, dedicated: true };
    }
    default:
      return rest;
  }
}

export function drawHostLabels(prng: Prng, { zone, ...rest }: Labels): Labels {
  if (prng.chance(1, 2)) return zone === undefined ? rest : { ...rest, zone };
  return prng.chance(1, 4) ? rest : { ...rest, zone: zones[prng.below(zones.length)] ?? 'a' };
}

/** `tenant`: the value of the label `tenant` on all instances of this tenant. */
export function drawPlacement(prng: Prng, tenant: string): InstanceSpec['placement'] {
  const by = prng.chance(1, 2) ? 'host' : 'zone';
  const required = prng.chance(1, 3);
  const rule = ((): InstanceSpec['placement'] => {
    switch (prng.below(12)) {
      case 0:
        return { antiAffinity: [{ to: { tenant }, by, required }] };
      case 1:
        return { spread: [{ by, maxSkew: 1 + prng.below(2), required }] };
      case 2:
        return { maxPerHost: 1 + prng.below(3) };
      case 3:
        return { hostRules: [{ key: 'zone', operator: 'NotIn', values: [zones[prng.below(zones.length)] ?? 'a'] }] };
      case 4:
        return { dedicated: true };
      default:
        return {};
    }
  })();
  return {
    ...(prng.chance(1, 2) ? { profile: 'distribute-load' } : {}),
    ...(prng.chance(1, 3) ? { tolerations: [{ key: taintKey }] } : {}),
    ...rule,
  };
}
