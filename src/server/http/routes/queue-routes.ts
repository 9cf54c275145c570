// `/v1/queue`: what waits for a host, first things first.

import { capacityRoutes } from '../../../api/routes/capacity.ts';
import { listQueue } from '../../../core/explain/queue-list.ts';
import { rightsOf } from '../../../core/access/rights-of.ts';
import type { Decider } from '../../decide.ts';
import { bind } from './bind.ts';
import type { Route } from '../route.ts';

export function queueRoutes({ cache, clock }: Decider): Route[] {
  return [
    bind(capacityRoutes.queue, ({ query: { project, limit } }, { caller }) => {
      const nowMs = Math.floor(clock.nowMs());
      const rights = rightsOf(caller.principal, cache);
      const knows = (of: string): boolean => rights.allows({ verb: 'read', resource: 'instance', project: of });
      return { status: 200, json: listQueue(cache, { nowMs, limit, project, knows }) };
    }),
  ];
}
