// Jobs of job templates, on request.

import { jobTemplateRoutes as routes } from '../../../../api/routes/job-templates.ts';
import { notFound } from '../../../../core/access/may.ts';
import { runJobTemplate } from '../../../../core/operations/job-templates/run.ts';
import { type Decider, forProject } from '../../../decide.ts';
import { decideFor, permitted } from '../../on-behalf.ts';
import type { Route } from '../../route.ts';
import { bind } from '../bind.ts';
import { present } from '../present.ts';
import { findOne } from '../find-resource.ts';
import { idempotencyKeyOf } from '../sent-resource.ts';
import { visibleTo } from '../visible.ts';

export function jobTemplateRoutes(decider: Decider): Route[] {
  const { cache } = decider;
  return [
    bind(routes.run, async ({ params, query, body: { metadata, spec } }, request) => {
      const { caller } = request;
      const { principal } = caller;
      const found = findOne('jobTemplate', cache, { caller, name: params.name, project: query.project });
      const { project, name } = found.value.metadata;
      const input = {
        ...{ project, name, jobName: metadata.name ?? '', labels: metadata.labels, parameters: spec.parameters },
        ...idempotencyKeyOf(request),
      };
      const { decision } = await decideFor(
        forProject(project, decider),
        request,
        permitted(principal, (snapshot, ctx) => runJobTemplate(snapshot, input, ctx)),
      );
      const entry = cache.get('job', decision.key);
      if (!entry) throw notFound('job', decision.key);
      return { status: 201, json: visibleTo(principal, cache)(present(entry), 'one') };
    }),
  ];
}
