// What a change of a placement group means: its instances that would stand against its new rules. They stay where they are; the group of
// instances that name it cannot be deleted.

import type { ChangeEffect } from '../../../api/plans/effects.ts';
import type { GroupSpec } from '../../../api/resources/group.ts';
import type { Instance } from '../../../api/resources/instance.ts';
import type { Metadata } from '../../../api/resources/metadata.ts';
import { fleetOf } from '../../scheduler/fleet.ts';
import { keys } from '../../state/keys.ts';
import type { Snapshot } from '../../state/snapshot.ts';
import { effect } from './effect.ts';

/** `after`: undefined when the group is deleted. */
export function groupEffects(
  snapshot: Snapshot,
  { project, name }: Metadata,
  after: GroupSpec | undefined,
): ChangeEffect[] {
  const selector = { project, labels: {}, placementGroup: name };
  const members = [...fleetOf(snapshot).groups.instancesOf(selector)].map(({ value }) => value);
  if (!after)
    return members.map((member) => effect(member, 'CannotPlace', 'it could not be placed without its placement group'));
  const broken = new Map<Instance, string>();
  const against = (few: readonly Instance[], message: string): void => few.forEach((one) => broken.set(one, message));
  const { affinity, antiAffinity, maxPerHost } = after;
  if (affinity?.required) {
    const [, ...smaller] = domainsOf(snapshot, members, affinity.by).sort((a, b) => b.length - a.length);
    against(smaller.flat(), `it is not with the others, by ${affinity.by}`);
  }
  if (antiAffinity?.required)
    for (const domain of domainsOf(snapshot, members, antiAffinity.by))
      against(domain.slice(1), `another is on the same ${antiAffinity.by}`);
  if (maxPerHost !== undefined)
    for (const there of domainsOf(snapshot, members, 'host'))
      against(there.slice(maxPerHost), `more than ${maxPerHost} are on its host`);
  return [...broken].map(([instance, message]) => effect(instance, 'BreaksRule', message));
}

/** The members that have a host, by its name or by a label of hosts; each in the order of their names. */
function domainsOf(snapshot: Snapshot, members: readonly Instance[], by: string): Instance[][] {
  const domains = new Map<string, Instance[]>();
  for (const member of members.toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))) {
    const { host } = member.status;
    if (host === undefined) continue;
    const domain = by === 'host' ? host : snapshot.get('host', keys.host(host))?.value.metadata.labels[by];
    if (domain === undefined) continue;
    const known = domains.get(domain);
    if (known) known.push(member);
    else domains.set(domain, [member]);
  }
  return [...domains.values()];
}
