// JobRequests over HTTP, with the same answer as over a broker; and the broker's dead letters.

import { createHash } from 'node:crypto';
import { ApiError } from '../../../../api/errors.ts';
import { deadLetterRoutes, jobRequestRoutes as routes } from '../../../../api/routes/job-requests.ts';
import { acceptJobRequest, readJobRequest } from '../../../../core/operations/jobs/job-request.ts';
import { assertMay } from '../../../../core/access/may.ts';
import { type Decider, forProject } from '../../../decide.ts';
import { decideFor, permitted } from '../../on-behalf.ts';
import { visibleTo } from '../visible.ts';
import type { DeadLetterQueue, Outside } from '../../../outside.ts';
import { bind } from '../bind.ts';
import { present } from '../present.ts';
import type { Route } from '../../route.ts';

export function jobRequestRoutes({
  decider,
  outside,
}: {
  readonly decider: Decider;
  readonly outside: Outside;
}): Route[] {
  const letters = (): DeadLetterQueue => {
    if (outside.deadLetters) return outside.deadLetters;
    throw new ApiError('Conflict', 'this server has no broker, so there are no dead letters; set AMQP_URL on it');
  };
  return [
    bind(routes.create, async ({ body, query }, request) => {
      const { principal } = request.caller;
      const bytes = Buffer.from(JSON.stringify(body ?? null));
      const answered = outside.deadLetters !== undefined; // without a broker nothing takes a result
      const read = readJobRequest(bytes, { hash: sha256 });
      const { project } = query;
      const question = { verb: 'create', resource: 'job', project } as const;
      assertMay(decider.cache, principal, question); // before it takes a place in the line of that project
      const accept = permitted(principal, (snapshot, ctx) => {
        assertMay(snapshot, principal, question);
        return acceptJobRequest(snapshot, { ...read, project, answered }, ctx);
      });
      const { decision } = await decideFor(forProject(project, decider), request, accept);
      const entry = decider.cache.get('job', decision.key);
      if (!entry) throw new ApiError('Conflict', 'the job of this request has been deleted; take a new request_id');
      return { status: decision.changed ? 201 : 200, json: visibleTo(principal, decider.cache)(present(entry), 'one') };
    }),
    bind(deadLetterRoutes.list, async () => ({ status: 200, json: await letters().list() })),
    bind(deadLetterRoutes.show, async ({ params }) => ({ status: 200, json: await letters().show(params.name) })),
    bind(deadLetterRoutes.retry, async ({ params }) => ({ status: 200, json: await letters().retry(params.name) })),
    bind(deadLetterRoutes.drop, async ({ params }) => ({ status: 200, json: await letters().drop(params.name) })),
  ];
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
