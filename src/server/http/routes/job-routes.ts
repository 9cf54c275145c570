// Cancel and retry of jobs.

import { ApiError } from '../../../api/errors.ts';
import { jobRoutes as routes } from '../../../api/routes/jobs.ts';
import { cancelJob, retryJob } from '../../../core/operations/jobs/job.ts';
import { assertMayOn } from '../../../core/access/may.ts';
import { type Decider, forProject } from '../../decide.ts';
import type { Caller } from '../caller.ts';
import { decideFor, permitted } from '../on-behalf.ts';
import { visibleTo } from './visible.ts';
import { bind } from './bind.ts';
import { present } from './present.ts';
import type { Route } from '../route.ts';
import { findJob } from './resource-routes.ts';

export function jobRoutes(decider: Decider): Route[] {
  const { cache } = decider;
  const shown = (key: string, { principal }: Caller): ReturnType<typeof present> => {
    const entry = cache.get('job', key);
    if (!entry) throw new ApiError('NotFound', 'the job has been deleted in the meantime');
    return visibleTo(principal, cache)(present(entry), 'one');
  };
  return [
    bind(routes.cancel, async ({ params, query }, request) => {
      const { principal } = request.caller;
      const job = findJob(cache, request.caller, params.name, query.project).value;
      assertMayOn(cache, principal, 'update', job);
      const { name, project } = job.metadata;
      const { decision } = await decideFor(
        forProject(project, decider),
        request,
        permitted(principal, (snapshot, ctx) => cancelJob(snapshot, { project, name }, ctx)),
      );
      return { status: 200, json: shown(decision.key, request.caller) };
    }),
    bind(routes.retry, async ({ params, query }, request) => {
      const { principal } = request.caller;
      const job = findJob(cache, request.caller, params.name, query.project).value;
      assertMayOn(cache, principal, 'create', job);
      const { name, project } = job.metadata;
      const { decision } = await decideFor(
        forProject(project, decider),
        request,
        permitted(principal, (snapshot, ctx) => retryJob(snapshot, { project, name }, ctx)),
      );
      return { status: 201, json: shown(decision.key, request.caller) };
    }),
  ];
}
