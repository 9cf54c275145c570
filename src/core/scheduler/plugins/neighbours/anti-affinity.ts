// anti-affinity: away from the instances that it names, and from those that name it: a required rule holds in both
// orders of arrival. Without `required` a host scores less for each matching instance nearby.

import { describeSelector, type Selector } from '../../neighbours/belonging.ts';
import {
  byHost,
  countNear,
  describeDomain,
  isKnown,
  keyMissing,
  keyUnknown,
  commonKey,
} from '../../neighbours/domains.ts';
import type { Fleet } from '../../fleet.ts';
import { type GroupPlugin, type Refusal, refuse } from '../../framework.ts';
import type { AffinityTerm } from '../../neighbours/group-terms.ts';
import type { Slot } from '../../engine/slot.ts';

interface Distance {
  readonly members: Selector;
  readonly by: string;
  readonly near: (slot: Slot) => number;
}

export const antiAffinity: GroupPlugin = {
  name: 'anti-affinity',
  summary: 'away from the named instances, and from those that must be away from it',
  dependsOn: 'group',
  prepare({ groups, belonging }, fleet) {
    const repellers = fleet.groups.repellersOf(belonging);
    if (groups.length === 0 && repellers.length === 0) return null;
    const own: Distance[] = [];
    const soft: (Distance & { readonly weight: number })[] = [];
    for (const term of groups) {
      if (term.kind !== 'antiAffinity') continue;
      if (term.required && !isKnown(term.by, fleet)) return keyUnknown(term.by);
      const distance = distanceOf(term, fleet);
      if (term.required) own.push(distance);
      else soft.push({ ...distance, weight: term.weight });
    }
    const others = repellers.map((each) => ({
      members: each.members,
      by: each.by,
      near: countNear(each, each.by, fleet),
    }));
    const all: readonly { readonly by: string }[] = [...own, ...others, ...soft];
    if (all.length === 0) return null;
    const scale =
      100 /
      Math.max(
        100,
        soft.reduce((sum, { weight }) => sum + weight, 0),
      );
    return {
      uniformBy: commonKey(all),
      perHost: all.every(({ by }) => by === byHost),
      ...(own.length + others.length === 0
        ? {}
        : {
            filter(slot: Slot) {
              for (const { members, by, near } of own) {
                const count = near(slot);
                if (count < 0) return keyMissing(by);
                if (count > 0) return tooNear({ members, by, count, slot, fleet });
              }
              for (const { members, by, near } of others)
                if (near(slot) > 0) return repelled({ members, by, slot, fleet });
              return null;
            },
          }),
      ...(soft.length === 0
        ? {}
        : {
            score(slot: Slot) {
              let sum = 0;
              for (const { near, weight } of soft) sum += weight / (1 + Math.max(0, near(slot)));
              return sum * scale;
            },
            scoreMaxElsewhere: soft.reduce((sum, { weight }) => sum + weight, 0) * scale,
          }),
    };
  },
};

function distanceOf({ members, by }: AffinityTerm, fleet: Fleet): Distance {
  return { members, by, near: countNear(fleet.groups.of(members), by, fleet) };
}

interface Found {
  readonly members: Selector;
  readonly by: string;
  readonly slot: Slot;
  readonly fleet: Fleet;
}

function tooNear({ members, by, count, slot, fleet }: Found & { readonly count: number }): Refusal {
  return refuse(
    'AntiAffinity',
    () => `${count} of ${describeSelector(members)} on ${describeDomain(by, slot, fleet)}, which it must be away from`,
  );
}

function repelled({ members, by, slot, fleet }: Found): Refusal {
  return refuse(
    'AntiAffinity',
    () =>
      `an instance on ${describeDomain(by, slot, fleet)} must be away from ${describeSelector(members)}, which match this one`,
  );
}
