// `/v1/instances/{name}/resize`: the plan, or the plan by its hash.

import { resizeRoutes as routes } from '../../../../api/routes/resizes.ts';
import type { ResizePlan } from '../../../../api/plans/resize-plan.ts';
import { assertMay, assertMayOn, may, notFound } from '../../../../core/access/may.ts';
import type { Principal } from '../../../../core/access/principal.ts';
import { beginResize, showResize } from '../../../../core/operations/instances/resize.ts';
import { keys } from '../../../../core/state/keys.ts';
import type { Snapshot } from '../../../../core/state/snapshot.ts';
import type { Decider } from '../../../decide.ts';
import { decideFor } from '../../on-behalf.ts';
import type { Route } from '../../route.ts';
import { bind } from '../bind.ts';
import { findOne } from '../find-resource.ts';

export function resizeRoutes(decider: Decider): Route[] {
  const { cache } = decider;
  return [
    bind(routes.resize, async ({ params, query, body: { apply, ...options } }, request) => {
      const { caller } = request;
      const { project, name } = findOne('instance', cache, { caller, name: params.name, project: query.project }).value
        .metadata;
      const assertAllowed = (snapshot: Snapshot): void => {
        const instance = snapshot.get('instance', keys.instance(project, name))?.value;
        if (!instance) throw notFound('instance', name);
        assertMayOn(snapshot, caller.principal, 'update', instance);
        if (options.size !== undefined)
          assertMay(snapshot, caller.principal, { verb: 'use', resource: 'size', project }, 'size');
      };
      assertAllowed(cache);
      if (apply === undefined) {
        const plan = showResize(cache, { project, name }, options);
        return { status: 200, json: { plan: seenBy(caller.principal, cache, plan), begun: false } };
      }
      const { decision } = await decideFor(decider, request, (snapshot, ctx) => {
        assertAllowed(snapshot);
        return beginResize(snapshot, { project, name, options, hash: apply }, ctx);
      });
      return { status: 200, json: { plan: seenBy(caller.principal, cache, decision.shown), begun: true } };
    }),
  ];
}

/** Other hosts are named to those who may read hosts. */
function seenBy(principal: Principal, snapshot: Snapshot, plan: ResizePlan): ResizePlan {
  const refused = may(principal, { verb: 'read', resource: 'host' }, snapshot);
  return refused === undefined ? plan : { ...plan, wouldFit: [] };
}
