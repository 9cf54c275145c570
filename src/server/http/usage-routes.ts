// What hosts have and hold: all of them by page, and one with its providers; and what projects ask for together.

import { ApiError } from '../../api/errors.ts';
import { chargedTo } from '../../core/queue/quotas.ts';
import { providersOf, usageOf } from '../../core/scheduler/usage.ts';
import { keys } from '../../core/state/keys.ts';
import type { Decider } from '../decide.ts';
import type { Route } from './route.ts';

const limitDefault = 500;
const limitMax = 5_000;

export function usageRoutes({ cache }: Decider): Route[] {
  return [
    {
      method: 'GET',
      path: '/v1/usage',
      verb: 'read',
      handle({ query }) {
        query.only('host', 'limit', 'continue');
        const host = query.text('host');
        const after = query.text('continue');
        const { items, more } = usageOf(cache, {
          limit: query.integer('limit', { min: 1, max: limitMax }) ?? limitDefault,
          ...(after === undefined ? {} : { after }),
          ...(host === undefined ? {} : { host }),
        });
        const last = items.at(-1)?.host;
        return { status: 200, json: { items, ...(more && last !== undefined ? { continue: last } : {}) } };
      },
    },
    {
      method: 'GET',
      path: '/v1/projects/:project/usage',
      verb: 'read',
      handle({ params, query }) {
        query.only();
        const project = params['project'] ?? '';
        return { status: 200, json: { project, charged: chargedTo(cache, project) } };
      },
    },
    {
      method: 'GET',
      path: '/v1/hosts/:host/providers',
      verb: 'read',
      handle({ params, query }) {
        query.only();
        const host = params['host'] ?? '';
        if (!cache.get('host', keys.host(host)))
          throw new ApiError('NotFound', `there is no host "${host.slice(0, 80)}"`);
        return { status: 200, json: providersOf(cache, host) };
      },
    },
  ];
}
