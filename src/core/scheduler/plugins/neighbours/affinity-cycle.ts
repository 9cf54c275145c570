// affinity-cycle: why the instances that another wants to be near are absent: pending, not created, or waiting for that
// instance themselves. Used only for pending instances; it never decides on a placement.

import {
  type Belonging,
  belongingOf,
  describeSelector,
  isMember,
  placeOf,
  type Selector,
} from '../../neighbours/belonging.ts';
import type { Fleet } from '../../fleet.ts';
import { type Refusal, refuse } from '../../framework.ts';
import type { Request } from '../../request.ts';

/** Number of pending instances searched for a cycle. */
const lookedAtMax = 256;

interface Step {
  readonly awaited: Selector;
  /** The chain of waiting instances so far. */
  readonly path: readonly string[];
}

export function whyNoMember({ belonging }: Pick<Request, 'belonging'>, awaited: Selector, fleet: Fleet): Refusal {
  const members = describeSelector(awaited);
  const seen = new Set<string>();
  const steps: Step[] = [{ awaited, path: [`this one for ${members}`] }];
  for (const { awaited: next, path } of steps) {
    for (const { key, value } of fleet.groups.instancesOf(next)) {
      if (seen.has(key) || seen.size >= lookedAtMax) continue;
      seen.add(key);
      if (placeOf(value) !== undefined || value.metadata.deletionRequestedAtMs !== undefined) continue;
      const { name, project } = value.metadata;
      const others = (value.spec.placement.affinity ?? [])
        .filter(({ required }) => required)
        .map(({ to }): Selector => ({ project, labels: to }))
        .filter((to) => isUnmet(to, belongingOf(value), fleet));
      if (others.length === 0 && value.status.phase === 'Pending' && path.length === 1)
        return refuse(
          'AffinityNoMember',
          `${members}, which it must be near, are not placed yet: ${name} waits for a place`,
        );
      for (const to of others) {
        const longer = [...path, `${name} for ${describeSelector(to)}`];
        if (isMember(to, belonging)) {
          return refuse(
            'AffinityCycle',
            `they wait for each other to be placed first: ${longer.join(', ')}; make one of the rules not required`,
          );
        }
        steps.push({ awaited: to, path: longer });
      }
    }
  }
  return refuse('AffinityNoMember', `none of ${members}, which it must be near, is on any host`);
}

function isUnmet(to: Selector, belonging: Belonging, fleet: Fleet): boolean {
  return !isMember(to, belonging) && fleet.groups.of(to).total === 0;
}
