// Claims of guests of warm pools.

import { warmPoolRoutes as routes } from '../../../../api/routes/warm-pools.ts';
import { notFound } from '../../../../core/access/may.ts';
import { placedAtOnce } from '../../../../core/controllers/at-once.ts';
import { claimWarmGuest } from '../../../../core/operations/warm-pools/claim.ts';
import { type Decider, forProject } from '../../../decide.ts';
import { decideFor, permitted } from '../../on-behalf.ts';
import type { Route } from '../../route.ts';
import { bind } from '../bind.ts';
import { present } from '../present.ts';
import { findOne } from '../find-resource.ts';
import { idempotencyKeyOf } from '../sent-resource.ts';
import { visibleTo } from '../visible.ts';

export function warmPoolRoutes(decider: Decider): Route[] {
  const { cache } = decider;
  return [
    bind(routes.claim, async ({ params, query, body: { metadata, spec } }, request) => {
      const { principal } = request.caller;
      const { project, name } = findOne('warmPool', cache, {
        caller: request.caller,
        name: params.name,
        project: query.project,
      }).value.metadata;
      const input = { project, name, labels: metadata.labels, spec, ...idempotencyKeyOf(request) };
      const claim = permitted(principal, (snapshot, ctx, attempt) => {
        const decision = claimWarmGuest(snapshot, input, ctx);
        return attempt === 0 ? placedAtOnce(snapshot, decision, ctx) : decision;
      });
      const { decision } = await decideFor(forProject(project, decider), request, claim);
      const entry = cache.get('instance', decision.key);
      if (!entry) throw notFound('instance', decision.key);
      return { status: 200, json: visibleTo(principal, cache)(present(entry), 'several') };
    }),
  ];
}
