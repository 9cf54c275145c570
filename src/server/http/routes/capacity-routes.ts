// `/v1/capacity`: how many more fit, what strands the rest, and whether the fleet survives losing hosts.

import { capacityRoutes as routes } from '../../../api/routes/capacity.ts';
import { capacityInSteps } from '../../../core/explain/capacity.ts';
import type { Decider } from '../../decide.ts';
import { inSlices } from '../../in-slices.ts';
import { type Asked, askedBy, requestFor } from './asked.ts';
import { bind } from './bind.ts';
import type { Answer, Route } from '../route.ts';

export function capacityRoutes({ cache, clock }: Decider): Route[] {
  const answer = async (asked: Asked | null, losses: number): Promise<Answer> => ({
    status: 200,
    json: await inSlices(clock, capacityInSteps(cache, { asked: asked && requestFor(cache, asked), losses })),
  });
  return [
    bind(routes.capacity, ({ query }, request) => {
      const asked = askedBy(query, request.query);
      const nothing = [...request.query.names()].every((name) => name === 'losses' || name === 'project');
      return answer(nothing ? null : asked, query.losses);
    }),
    bind(routes.findCapacity, ({ body: { project = 'default', labels, spec, losses } }) =>
      answer(spec ? { project, labels, spec } : null, losses),
    ),
  ];
}
