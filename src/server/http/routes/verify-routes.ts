// `/v1/verify`: what of the fleet does not fit together, and its repair.

import { storeRoutes } from '../../../api/routes/store.ts';
import { assertMay } from '../../../core/access/may.ts';
import type { Decider } from '../../decide.ts';
import type { Verifier } from '../../verifier.ts';
import { decideFor } from '../on-behalf.ts';
import type { Route } from '../route.ts';
import { bind } from './bind.ts';

export function verifyRoutes(verifier: Verifier, decider: Decider): Route[] {
  return [storeRoutes.verify, storeRoutes.formerVerify].map((definition) =>
    bind(definition, async ({ body }, request) => {
      // A repair may remove guests with their disks.
      if (body.apply) assertMay(decider.cache, request.caller.principal, { verb: 'update', resource: 'fleet' });
      return { status: 200, json: await verifier.report(body, (decide) => decideFor(decider, request, decide)) };
    }),
  );
}
