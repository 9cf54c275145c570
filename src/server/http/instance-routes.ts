// Routes below an instance: why it is where it is, and what its console says.

import { ApiError } from '../../api/errors.ts';
import { explainInSteps } from '../../core/scheduler/explain.ts';
import type { Decider } from '../decide.ts';
import { inSlices } from '../in-slices.ts';
import type { HostLinks } from './host-links.ts';
import { pageOf } from './host-page.ts';
import { findInstance } from './resource-routes.ts';
import type { Route } from './route.ts';

export function instanceRoutes({ decider, links }: { decider: Decider; links: HostLinks }): Route[] {
  return [
    {
      method: 'GET',
      path: '/v1/instances/:name/explain',
      verb: 'read',
      async handle({ params, query }) {
        query.only('project', 'limit', 'continue');
        const { value } = findInstance(decider.cache, params['name'] ?? '', query);
        const steps = explainInSteps(decider.cache, value, { ...pageOf(query), nowMs: decider.clock.nowMs() });
        return { status: 200, json: await inSlices(decider.clock, steps) };
      },
    },
    {
      method: 'GET',
      path: '/v1/instances/:name/log',
      verb: 'read',
      async handle({ params, query, signal }) {
        query.only('project', 'offset', 'follow');
        const { value } = findInstance(decider.cache, params['name'] ?? '', query);
        const { host } = value.status;
        if (host === undefined) {
          throw new ApiError(
            'Conflict',
            `instance "${value.metadata.name}" has no console yet: it is not placed on a host`,
          );
        }
        const offset = query.integer('offset', { min: 0, max: Number.MAX_SAFE_INTEGER }) ?? 0;
        const path = `/guests/${value.metadata.id}/log?offset=${offset}&follow=${query.flag('follow')}`;
        const answer = await links.get(host, path, signal);
        return {
          status: 200,
          bytes: answer.body,
          headers: { 'berth-log-offset': answer.headers['berth-log-offset'] ?? String(offset) },
        };
      },
    },
  ];
}
