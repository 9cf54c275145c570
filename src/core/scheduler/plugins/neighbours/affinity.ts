// affinity: near the instances that it names. The first of a group with affinity to itself may go anywhere; an instance
// with affinity to others waits until one of them is placed.

import { describeSelector, isMember } from '../../neighbours/belonging.ts';
import {
  byHost,
  countNear,
  describeDomain,
  isKnown,
  keyMissing,
  keyUnknown,
  nowhere,
  commonKey,
} from '../../neighbours/domains.ts';
import type { Fleet } from '../../fleet.ts';
import { type GroupPlugin, type Refusal, refuse } from '../../framework.ts';
import type { AffinityTerm } from '../../neighbours/group-terms.ts';
import type { Members } from '../../neighbours/groups.ts';
import type { Slot } from '../../engine/slot.ts';
import { whyNoMember } from './affinity-cycle.ts';

/** Up to this many hosts near members are listed one by one. */
const shortlistMax = 512;

interface Nearness {
  readonly term: AffinityTerm;
  readonly near: (slot: Slot) => number;
  /** Null: too many to list. */
  readonly hosts: readonly Slot[] | null;
}

export const affinity: GroupPlugin = {
  name: 'affinity',
  summary: 'near the named instances',
  dependsOn: 'group',
  prepare(request, fleet) {
    if (request.groups.length === 0) return null;
    const required: Nearness[] = [];
    const soft: Nearness[] = [];
    const alone: AffinityTerm[] = [];
    for (const term of request.groups) {
      if (term.kind !== 'affinity') continue;
      if (term.required && !isKnown(term.by, fleet)) return keyUnknown(term.by);
      const members = fleet.groups.of(term.members);
      if (members.total > 0) (term.required ? required : soft).push(nearnessOf(term, members, fleet));
      else if (!term.required) continue;
      else if (isMember(term.members, request.belonging)) alone.push(term);
      else return nowhere(() => whyNoMember(request, term.members, fleet));
    }
    if (required.length + soft.length + alone.length === 0) return null;
    const total = soft.reduce((sum, { term }) => sum + term.weight, 0);
    const scale = 100 / Math.max(100, total);
    const uniformBy = commonKey([...alone, ...required.map(({ term }) => term), ...soft.map(({ term }) => term)]);
    const labelled = alone.filter(({ by }) => by !== byHost).map(({ by }) => by);
    return {
      uniformBy,
      ...(required.length + labelled.length === 0
        ? {}
        : {
            filter(slot: Slot) {
              for (const by of labelled) if (!hasLabel(by, slot, fleet)) return keyMissing(by);
              for (const { term, near } of required) {
                const count = near(slot);
                if (count < 0) return keyMissing(term.by);
                if (count === 0) return tooFar(term, slot, fleet);
              }
              return null;
            },
          }),
      ...(soft.length === 0
        ? {}
        : {
            score(slot: Slot) {
              let sum = 0;
              for (const { term, near } of soft) if (near(slot) > 0) sum += term.weight;
              return sum * scale;
            },
          }),
      ...firstLook(required, soft, scale),
    };
  },
};

/** Which hosts to examine first, and the highest score of the others. */
function firstLook(required: readonly Nearness[], soft: readonly Nearness[], scale: number) {
  let fewest: readonly Slot[] | null = null;
  for (const { hosts } of required) if (hosts && (!fewest || hosts.length < fewest.length)) fewest = hosts;
  if (fewest) return { shortlist: fewest, scoreMaxElsewhere: null };
  if (soft.length === 0) return {};
  let elsewhere = 0;
  const shortlist: Slot[] = [];
  for (const { hosts, term } of soft) {
    if (hosts) shortlist.push(...hosts);
    else elsewhere += term.weight;
  }
  return { shortlist, scoreMaxElsewhere: elsewhere * scale };
}

function nearnessOf(term: AffinityTerm, members: Members, fleet: Fleet): Nearness {
  return { term, near: countNear(members, term.by, fleet), hosts: hostsNear(members, term.by, fleet) };
}

function hostsNear(members: Members, by: string, fleet: Fleet): readonly Slot[] | null {
  if (by === byHost) return members.bySlot.size <= shortlistMax ? [...members.bySlot.keys()] : null;
  const { slots } = fleet.topologies.of(by);
  const hosts: Slot[] = [];
  for (const [domain, count] of fleet.groups.byDomain(members, by).entries()) {
    if (count === 0) continue;
    const inDomain = slots[domain];
    if (!inDomain || hosts.length + inDomain.size > shortlistMax) return null;
    hosts.push(...inDomain);
  }
  return hosts;
}

function hasLabel(by: string, slot: Slot, { topologies }: Fleet): boolean {
  return (topologies.of(by).domainOf[slot] ?? -1) >= 0;
}

function tooFar({ members, by }: AffinityTerm, slot: Slot, fleet: Fleet): Refusal {
  return refuse(
    'Affinity',
    () => `none of ${describeSelector(members)} on ${describeDomain(by, slot, fleet)}, which it must be near`,
  );
}
