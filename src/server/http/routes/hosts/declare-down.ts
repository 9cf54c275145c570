// An operator declares a silent host to be down.

import { hostRoutes } from '../../../../api/routes/hosts.ts';
import { assertMay, notFound } from '../../../../core/access/may.ts';
import { declareDown } from '../../../../core/operations/hosts/declare-down.ts';
import type { Decider } from '../../../decide.ts';
import { decideFor, permitted } from '../../on-behalf.ts';
import type { Route } from '../../route.ts';
import { bind } from '../bind.ts';
import { present } from '../present.ts';

export function declareDownRoute(decider: Decider): Route {
  return bind(hostRoutes.declareDown, async ({ params: { host }, body: { reason } }, request) => {
    const { principal } = request.caller;
    const question = { verb: 'drain', resource: 'host' } as const;
    assertMay(decider.cache, principal, question);
    const decide = permitted(principal, (snapshot, ctx) => {
      assertMay(snapshot, principal, question);
      return declareDown(snapshot, { name: host, reason }, ctx);
    });
    const { decision } = await decideFor(decider, request, decide);
    const found = decider.cache.get('host', decision.key);
    if (found === undefined) throw notFound('host', host);
    return { status: 200, json: present(found) };
  });
}
