// Cancel and retry of jobs.

import type { Verb } from '../../../../api/access.ts';
import { ApiError } from '../../../../api/errors.ts';
import type { AnyResource } from '../../../../api/resources/index.ts';
import { jobRoutes as routes } from '../../../../api/routes/jobs.ts';
import { cancelJob, retryJob } from '../../../../core/operations/jobs/job.ts';
import { assertMayOn } from '../../../../core/access/may.ts';
import { type Decider, forProject } from '../../../decide.ts';
import { decideFor, permitted } from '../../on-behalf.ts';
import { visibleTo } from '../visible.ts';
import { bind } from '../bind.ts';
import { present } from '../present.ts';
import type { Route, RouteRequest } from '../../route.ts';
import { findOne } from '../find-resource.ts';

export function jobRoutes(decider: Decider): Route[] {
  const { cache } = decider;
  /** The job that comes of an operation on a job. */
  const act = async (
    request: RouteRequest,
    asked: { readonly name: string; readonly project: string },
    { verb, operation }: { readonly verb: Verb; readonly operation: typeof cancelJob },
  ): Promise<AnyResource> => {
    const { caller } = request;
    const { principal } = caller;
    const job = findOne('job', cache, { caller, ...asked }).value;
    assertMayOn(cache, principal, verb, job);
    const { name, project } = job.metadata;
    const { decision } = await decideFor(
      forProject(project, decider),
      request,
      permitted(principal, (snapshot, ctx) => operation(snapshot, { project, name }, ctx)),
    );
    const entry = cache.get('job', decision.key);
    if (!entry) throw new ApiError('NotFound', 'the job has been deleted in the meantime');
    return visibleTo(principal, cache)(present(entry), 'one');
  };
  return [
    bind(routes.cancel, async ({ params: { name }, query: { project } }, request) => ({
      status: 200,
      json: await act(request, { name, project }, { verb: 'update', operation: cancelJob }),
    })),
    bind(routes.retry, async ({ params: { name }, query: { project } }, request) => ({
      status: 201,
      json: await act(request, { name, project }, { verb: 'create', operation: retryJob }),
    })),
  ];
}
