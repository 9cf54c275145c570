// Cancel and retry of jobs.

import { ApiError } from '../../../api/errors.ts';
import { jobRoutes as routes } from '../../../api/routes/jobs.ts';
import { cancelJob, retryJob } from '../../../core/operations/jobs/job.ts';
import { decideAndCommit, type Decider } from '../../decide.ts';
import { bind } from './bind.ts';
import { present } from './present.ts';
import type { Route } from '../route.ts';
import { findJob } from './resource-routes.ts';

export function jobRoutes(decider: Decider): Route[] {
  const { cache } = decider;
  const shown = (key: string): ReturnType<typeof present> => {
    const entry = cache.get('job', key);
    if (!entry) throw new ApiError('NotFound', 'the job has been deleted in the meantime');
    return present(entry);
  };
  return [
    bind(routes.cancel, async ({ params, query }) => {
      const { name, project } = findJob(cache, params.name, query.project).value.metadata;
      const { decision } = await decideAndCommit(decider, (snapshot, ctx) =>
        cancelJob(snapshot, { project, name }, ctx),
      );
      return { status: 200, json: shown(decision.key) };
    }),
    bind(routes.retry, async ({ params, query }) => {
      const { name, project } = findJob(cache, params.name, query.project).value.metadata;
      const { decision } = await decideAndCommit(decider, (snapshot, ctx) =>
        retryJob(snapshot, { project, name }, ctx),
      );
      return { status: 201, json: shown(decision.key) };
    }),
  ];
}
