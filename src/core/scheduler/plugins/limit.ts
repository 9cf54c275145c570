// limit: a maximum number of a group's members on one host.

import { describeSelector } from '../neighbours/belonging.ts';
import { byHost, commonKey, countNear, describeDomain } from '../neighbours/domains.ts';
import { type GroupPlugin, refuse } from '../framework.ts';
import type { LimitTerm } from '../neighbours/group-terms.ts';

export const limit: GroupPlugin = {
  name: 'limit',
  summary: 'no host has more instances of a group than its limit',
  dependsOn: 'group',
  prepare({ groups }, fleet) {
    if (groups.length === 0) return null;
    const terms = groups.filter((term): term is LimitTerm => term.kind === 'limit');
    if (terms.length === 0) return null;
    const checks = terms.map((term) => ({ term, near: countNear(fleet.groups.of(term.members), term.by, fleet) }));
    return {
      uniformBy: commonKey(terms),
      perHost: terms.every(({ by }) => by === byHost),
      filter(slot) {
        for (const { term, near } of checks) {
          const count = near(slot);
          if (count <= term.max) continue;
          return refuse(
            'LimitReached',
            () =>
              `${count} of ${describeSelector(term.members)} are on ${describeDomain(term.by, slot, fleet)}, at most ${term.max + 1} are allowed`,
          );
        }
        return null;
      },
    };
  },
};
