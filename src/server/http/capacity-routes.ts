// `/v1/capacity`: how many more fit, what strands the rest, and whether the fleet survives losing hosts.

import { CapacityQuestion } from '../../api/capacity.ts';
import { parse } from '../../api/parse.ts';
import { capacityInSteps } from '../../core/scheduler/capacity.ts';
import type { Decider } from '../decide.ts';
import { inSlices } from '../in-slices.ts';
import { type Asked, askedBy, requestFor } from './asked.ts';
import type { Answer, Route } from './route.ts';

export function capacityRoutes({ cache, clock }: Decider): Route[] {
  const answer = async (asked: Asked | null, losses: number): Promise<Answer> => ({
    status: 200,
    json: await inSlices(clock, capacityInSteps(cache, { asked: asked && requestFor(cache, asked), losses })),
  });
  return [
    {
      method: 'GET',
      path: '/v1/capacity',
      verb: 'read',
      handle({ query }) {
        const asked = askedBy(query, ['losses']);
        const nothing = [...query.names()].every((name) => name === 'losses' || name === 'project');
        return answer(nothing ? null : asked, query.integer('losses', { min: 0, max: 2 }) ?? 0);
      },
    },
    {
      method: 'POST',
      path: '/v1/capacity',
      verb: 'read',
      handle({ query, body }) {
        query.only();
        const { project = 'default', labels, spec, losses } = parse(CapacityQuestion, body);
        return answer(spec ? { project, labels, spec } : null, losses);
      },
    },
  ];
}
