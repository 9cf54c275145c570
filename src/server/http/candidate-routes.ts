// `/v1/candidates`: which hosts would take what is asked for, in a query string or, for all there is to say, in a body.

import { CandidateQuestion } from '../../api/candidates.ts';
import { parse } from '../../api/parse.ts';
import { candidatesInSteps } from '../../core/scheduler/candidates.ts';
import type { Decider } from '../decide.ts';
import { inSlices } from '../in-slices.ts';
import { type Asked, askedBy, requestFor } from './asked.ts';
import type { Answer, Route } from './route.ts';

const limitDefault = 20;
const limitMax = 1_000;

export function candidateRoutes({ cache, clock }: Decider): Route[] {
  const answer = async (asked: Asked, limit: number): Promise<Answer> => ({
    status: 200,
    json: await inSlices(clock, candidatesInSteps(cache, requestFor(cache, asked), limit)),
  });
  return [
    {
      method: 'GET',
      path: '/v1/candidates',
      verb: 'read',
      handle: ({ query }) =>
        answer(askedBy(query, ['limit']), query.integer('limit', { min: 1, max: limitMax }) ?? limitDefault),
    },
    {
      method: 'POST',
      path: '/v1/candidates',
      verb: 'read',
      handle({ query, body }) {
        query.only();
        const { project = 'default', labels, spec, limit } = parse(CandidateQuestion, body);
        return answer({ project, labels, spec }, limit);
      },
    },
  ];
}
