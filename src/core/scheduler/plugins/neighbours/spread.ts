// spread: members evenly over racks, zones or hosts: after the placement, no domain has more than `maxSkew` members
// above the emptiest. Counts and skew are those of Kubernetes (topology spread constraints, whenUnsatisfiable
// DoNotSchedule and ScheduleAnyway); domains.ts says which domains count.

import { describeSelector, isMember } from '../../neighbours/belonging.ts';
import {
  byHost,
  countNear,
  describeDomain,
  type Eligible,
  eligibleDomains,
  keyMissing,
  keyUnknown,
  commonKey,
} from '../../neighbours/domains.ts';
import type { Fleet } from '../../fleet.ts';
import { type GroupPlugin, type Refusal, refuse } from '../../framework.ts';
import type { SpreadTerm } from '../../neighbours/group-terms.ts';
import type { Members } from '../../neighbours/groups.ts';
import type { Request } from '../../request.ts';
import type { Slot } from '../../engine/slot.ts';

interface Spread {
  readonly term: SpreadTerm;
  readonly near: (slot: Slot) => number;
  /** 1 when the instance itself is a member. */
  readonly self: number;
  /** Members in the emptiest domain that counts. */
  readonly least: number;
  /** Members in the fullest one. */
  readonly most: number;
}

export const spread: GroupPlugin = {
  name: 'spread',
  summary: 'instances of a group are spread evenly over racks, zones or hosts',
  dependsOn: 'group',
  prepare(request, fleet) {
    if (request.groups.length === 0) return null;
    const required: Spread[] = [];
    const soft: Spread[] = [];
    for (const term of request.groups) {
      if (term.kind !== 'spread') continue;
      const eligible = eligibleDomains(request, term.by, fleet);
      if (eligible.domains.length === 0) {
        if (term.required) return keyUnknown(term.by);
        continue;
      }
      (term.required ? required : soft).push(spreadOf(term, request, eligible, fleet));
    }
    if (required.length + soft.length === 0) return null;
    return {
      uniformBy: commonKey([...required, ...soft].map(({ term }) => term)),
      perHost: [...required, ...soft].every(({ term }) => term.by === byHost),
      given: [...required.map(({ least }) => least), ...soft.map(({ least, most }) => `${least}-${most}`)].join(),
      ...(required.length === 0
        ? {}
        : {
            filter(slot: Slot) {
              for (const one of required) {
                const count = one.near(slot);
                if (count < 0) return keyMissing(one.term.by);
                if (count + one.self - one.least > one.term.maxSkew) return tooUneven(one, { count, slot, fleet });
              }
              return null;
            },
          }),
      ...(soft.length === 0
        ? {}
        : {
            score(slot: Slot) {
              let sum = 0;
              for (const one of soft) sum += evenness(one, one.near(slot));
              return sum / soft.length;
            },
          }),
    };
  },
};

function spreadOf(term: SpreadTerm, request: Request, eligible: Eligible, fleet: Fleet): Spread {
  const members = fleet.groups.of(term.members);
  const { least, most } = extremes(members, term, eligible, fleet);
  const self = isMember(term.members, request.belonging) ? 1 : 0;
  return { term, near: countNear(members, term.by, fleet), self, least, most };
}

function extremes(
  members: Members,
  { by }: SpreadTerm,
  eligible: Eligible,
  fleet: Fleet,
): { least: number; most: number } {
  let least = Number.POSITIVE_INFINITY;
  let most = 0;
  if (by === byHost) {
    let hosts = 0;
    for (const [slot, count] of members.bySlot) {
      if (!eligible.has(slot)) continue;
      hosts += 1;
      if (count < least) least = count;
      if (count > most) most = count;
    }
    return { least: hosts < eligible.domains.length ? 0 : least, most };
  }
  const counts = fleet.groups.byDomain(members, by);
  for (const domain of eligible.domains) {
    const count = counts[domain] ?? 0;
    if (count < least) least = count;
    if (count > most) most = count;
  }
  return { least, most };
}

/** 100 while the skew stays within bounds, 0 in the fullest domain, proportional in between. */
function evenness({ term, self, least, most }: Spread, count: number): number {
  if (count < 0) return 0;
  const excess = count + self - least - term.maxSkew;
  if (excess <= 0) return 100;
  const excessMost = Math.max(excess, most + self - least - term.maxSkew);
  return 100 * (1 - excess / excessMost);
}

function tooUneven(
  { term: { members, by, maxSkew }, least }: Spread,
  { count, slot, fleet }: { readonly count: number; readonly slot: Slot; readonly fleet: Fleet },
): Refusal {
  const where = by === byHost ? 'another host' : `another ${by}`;
  return refuse(
    'Spread',
    () =>
      `${count} of ${describeSelector(members)} on ${describeDomain(by, slot, fleet)} and ${least} on ${where}: one more would be ahead by more than ${maxSkew}`,
  );
}
