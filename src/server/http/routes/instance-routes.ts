// Routes below an instance: why it is where it is, and what its console says.

import { ApiError } from '../../../api/errors.ts';
import { instanceRoutes as routes } from '../../../api/routes/instances.ts';
import { assertMayOn } from '../../../core/access/may.ts';
import { about } from '../../../core/access/question.ts';
import { explainInSteps } from '../../../core/explain/explain.ts';
import type { Decider } from '../../decide.ts';
import { inSlices } from '../../in-slices.ts';
import { bind } from './bind.ts';
import type { HostLinks } from '../agent-link/host-links.ts';
import { explanationSeenBy } from './visible.ts';
import { findOne } from './find-resource.ts';
import type { Route } from '../route.ts';

export function instanceRoutes({ decider, links }: { decider: Decider; links: HostLinks }): Route[] {
  return [
    bind(routes.explain, async ({ params, query }, { caller }) => {
      const { value } = findOne('instance', decider.cache, { caller, name: params.name, project: query.project });
      assertMayOn(decider.cache, caller.principal, 'read', value);
      const page = { limit: query.limit, offset: query.continue };
      const steps = explainInSteps(decider.cache, value, { ...page, nowMs: decider.clock.nowMs() });
      const seen = explanationSeenBy(caller.principal, decider.cache);
      return { status: 200, json: seen(await inSlices(decider.clock, steps)) };
    }),
    bind(routes.log, async ({ params, query: { project, offset, follow } }, { caller, signal }) => {
      const { value } = findOne('instance', decider.cache, { caller, name: params.name, project });
      assertMayOn(decider.cache, caller.principal, 'logs', value);
      const { host } = value.status;
      if (host === undefined) {
        throw new ApiError(
          'Conflict',
          `instance "${value.metadata.name}" has no console yet: it is not placed on a host`,
        );
      }
      const path = `/guests/${value.metadata.id}/log?offset=${offset}&follow=${follow}`;
      const answer = await links.get(host, path, signal);
      return {
        status: 200,
        bytes: answer.body,
        question: about('logs', value),
        headers: { 'berth-log-offset': answer.headers['berth-log-offset'] ?? String(offset) },
      };
    }),
  ];
}
