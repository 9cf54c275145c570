// `/v1/queue`: what waits for a host, first things first.

import { listQueue } from '../../core/queue/list.ts';
import type { Decider } from '../decide.ts';
import type { Route } from './route.ts';

export function queueRoutes({ cache, clock }: Decider): Route[] {
  return [
    {
      method: 'GET',
      path: '/v1/queue',
      verb: 'read',
      handle({ query }) {
        query.only('project', 'limit');
        const limit = query.integer('limit', { min: 1, max: 10_000 }) ?? 100;
        const nowMs = Math.floor(clock.nowMs());
        return { status: 200, json: listQueue(cache, { nowMs, limit, project: query.text('project') }) };
      },
    },
  ];
}
