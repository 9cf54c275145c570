// `/v1/capacity`: how many more fit, what strands the rest, and whether the fleet survives losing hosts.

import type { Capacity } from '../../../api/capacity.ts';
import { capacityRoutes as routes } from '../../../api/routes/capacity.ts';
import { capacityInSteps } from '../../../core/explain/capacity.ts';
import { assertMay } from '../../../core/access/may.ts';
import type { Principal } from '../../../core/access/principal.ts';
import { rightsOf } from '../../../core/access/rights-of.ts';
import { capacityWithoutGuests, capacityWithoutNames } from '../../../core/access/without-names.ts';
import type { Decider } from '../../decide.ts';
import { inSlices } from '../../in-slices.ts';
import { type Asked, askedBy, requestFor } from './asked.ts';
import { bind } from './bind.ts';
import { RecentAnswers } from '../../recent-answers.ts';
import type { Answer, Route } from '../route.ts';

export function capacityRoutes({ cache, clock }: Decider): Route[] {
  const make = (asked: Asked | null, losses: number): Promise<Capacity> =>
    inSlices(clock, capacityInSteps(cache, { asked: asked && requestFor(cache, asked), losses }));
  const recent = new RecentAnswers(clock, (losses: number) => make(null, losses));
  cache.follow({
    apply({ kind }) {
      if (kind === 'size' || kind === 'host' || kind === 'pool') recent.outdate();
    },
  });
  const answer = async (
    principal: Principal,
    asked: Asked | null,
    { losses, maxAgeMs = 0 }: { readonly losses: number; readonly maxAgeMs?: number },
  ): Promise<Answer> => {
    const rights = rightsOf(principal, cache);
    const named = rights.everywhere('read', 'host');
    if (asked && !named) assertMay(cache, principal, { verb: 'create', resource: 'instance', project: asked.project });
    const capacity = await (asked ? make(asked, losses) : recent.of(losses, maxAgeMs));
    if (!named) return { status: 200, json: capacityWithoutNames(capacity) };
    return { status: 200, json: rights.everywhere('read', 'instance') ? capacity : capacityWithoutGuests(capacity) };
  };
  return [
    bind(routes.capacity, ({ query }, request) => {
      const asked = askedBy(query, request.query);
      const nothing = [...request.query.names()].every((name) => name === 'losses' || name === 'project');
      return answer(request.caller.principal, nothing ? null : asked, query);
    }),
    bind(routes.findCapacity, ({ body: { project = 'default', labels, spec, losses, maxAgeMs } }, { caller }) =>
      answer(caller.principal, spec ? { project, labels, spec } : null, { losses, maxAgeMs }),
    ),
  ];
}
