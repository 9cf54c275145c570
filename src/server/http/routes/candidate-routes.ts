// `/v1/candidates`: which hosts would take what is asked for, in a query string or, for all there is to say, in a body.

import { capacityRoutes } from '../../../api/routes/capacity.ts';
import { candidatesInSteps } from '../../../core/explain/candidates.ts';
import type { Decider } from '../../decide.ts';
import { inSlices } from '../../in-slices.ts';
import { type Asked, askedBy, requestFor } from './asked.ts';
import { bind } from './bind.ts';
import type { Answer, Route } from '../route.ts';

export function candidateRoutes({ cache, clock }: Decider): Route[] {
  const answer = async (asked: Asked, limit: number): Promise<Answer> => ({
    status: 200,
    json: await inSlices(clock, candidatesInSteps(cache, requestFor(cache, asked), limit)),
  });
  return [
    bind(capacityRoutes.candidates, ({ query }, request) => answer(askedBy(query, request.query), query.limit)),
    bind(capacityRoutes.findCandidates, ({ body: { project = 'default', labels, spec, limit } }) =>
      answer({ project, labels, spec }, limit),
    ),
  ];
}
