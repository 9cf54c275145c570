// A placement group's rules in words, and whether its instances satisfy them now: rules and labels of hosts may have
// changed since the placement.

import type { GroupSpec } from '../../api/resources/group.ts';
import type { Host } from '../../api/resources/host.ts';
import type { Instance } from '../../api/resources/instance.ts';

/** `apart by zone`, `spread over rack (skew 1)`, `3 per host`; soft ones end in `if possible`. */
export function rulesOfGroup({ affinity, antiAffinity, spread, maxPerHost }: GroupSpec): string[] {
  const soft = (required: boolean): string => (required ? '' : ' if possible');
  return [
    ...(affinity ? [`together by ${affinity.by}${soft(affinity.required)}`] : []),
    ...(antiAffinity ? [`apart by ${antiAffinity.by}${soft(antiAffinity.required)}`] : []),
    ...(spread ? [`spread over ${spread.by} (skew ${spread.maxSkew})${soft(spread.required)}`] : []),
    ...(maxPerHost === undefined ? [] : [`${maxPerHost} per host`]),
  ];
}

/** Violations of the rules, one sentence each. `instances`: those of the group. */
export function brokenRules(
  { affinity, antiAffinity, spread, maxPerHost }: GroupSpec,
  instances: readonly Instance[],
  hosts: readonly Host[],
): string[] {
  const placed = instances.flatMap(({ status: { phase, host } }) =>
    host === undefined || phase === 'Failed' || phase === 'Exited' ? [] : [host],
  );
  const byName = new Map(hosts.map((host) => [host.metadata.name, host]));
  const domainOf = (host: string, by: string): string | undefined => {
    const labels = byName.get(host)?.metadata.labels ?? {};
    return by === 'host' ? host : Object.hasOwn(labels, by) ? labels[by] : undefined;
  };
  const countBy = (by: string): Map<string, number> => {
    const counts = new Map<string, number>();
    for (const host of placed) {
      const domain = domainOf(host, by);
      if (domain !== undefined) counts.set(domain, (counts.get(domain) ?? 0) + 1);
    }
    return counts;
  };
  const broken: string[] = [];
  if (affinity) {
    const domains = countBy(affinity.by).size;
    if (domains > 1) broken.push(`not together: on ${domains} different ${affinity.by}s`);
  }
  if (antiAffinity) {
    for (const [domain, count] of countBy(antiAffinity.by))
      if (count > 1) broken.push(`not apart: ${count} on ${antiAffinity.by} ${domain}`);
  }
  if (maxPerHost !== undefined) {
    for (const [host, count] of countBy('host')) if (count > maxPerHost) broken.push(`${count} on host ${host}`);
  }
  if (spread) {
    const counts = countBy(spread.by);
    for (const { metadata } of hosts) {
      const domain = domainOf(metadata.name, spread.by);
      if (domain !== undefined && !counts.has(domain)) counts.set(domain, 0);
    }
    const skew = counts.size === 0 ? 0 : Math.max(...counts.values()) - Math.min(...counts.values());
    if (skew > spread.maxSkew) broken.push(`uneven over ${spread.by}: ${skew} apart`);
  }
  return broken;
}
