// `/v1/queue`: what waits for a host, first things first.

import { capacityRoutes } from '../../../api/routes/capacity.ts';
import type { Job } from '../../../api/resources/job.ts';
import { listQueue } from '../../../core/explain/queue-list.ts';
import { assertMay } from '../../../core/access/may.ts';
import { rightsOf } from '../../../core/access/rights-of.ts';
import { jobOutlooks } from '../../../core/operations/jobs/outlook.ts';
import { contextOf, type Decider } from '../../decide.ts';
import { bind } from './bind.ts';
import { knowsNames } from './visible.ts';
import type { Route } from '../route.ts';

export function queueRoutes(decider: Decider): Route[] {
  const { cache, clock } = decider;
  return [
    bind(capacityRoutes.queue, ({ query: { project, limit } }, { caller }) => {
      const nowMs = Math.floor(clock.nowMs());
      const { principal } = caller;
      const rights = rightsOf(principal, cache);
      const names = knowsNames(principal, cache);
      const seesPlaces = rights.everywhere('read-placement', 'instance');
      if (project !== undefined && !seesPlaces && !rights.isShare)
        assertMay(cache, principal, { verb: 'read', resource: 'instance', project });
      const knows = (of: string): boolean => seesPlaces || names(of);
      const outlookOf = jobOutlooks(cache, contextOf(decider));
      const startOf = (job: Job): number | undefined => outlookOf(job).estimatedStartMs;
      return { status: 200, json: listQueue(cache, { nowMs, limit, project, knows, names, startOf }) };
    }),
  ];
}
