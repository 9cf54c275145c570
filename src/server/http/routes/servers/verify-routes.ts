// `/v1/verify`: what of the fleet does not fit together, and its repair.

import { storeRoutes } from '../../../../api/routes/store.ts';
import { assertMay } from '../../../../core/access/may.ts';
import type { Decider } from '../../../decide.ts';
import { rightsOf } from '../../../../core/access/rights-of.ts';
import { verifyReportWithoutNames } from '../../../../core/access/without-names.ts';
import type { Verifier } from '../../../verifier.ts';
import { decideFor } from '../../on-behalf.ts';
import type { Route } from '../../route.ts';
import { bind } from '../bind.ts';

export function verifyRoutes(verifier: Verifier, decider: Decider): Route[] {
  const snapshot = decider.cache;
  return [storeRoutes.verify, storeRoutes.formerVerify].map((definition) =>
    bind(definition, async ({ body }, request) => {
      const { principal } = request.caller;
      // A repair may remove guests with their disks.
      if (body.apply) assertMay(snapshot, principal, { verb: 'update', resource: 'fleet' }, 'apply');
      const report = await verifier.report(body, (decide) => decideFor(decider, request, decide));
      const named = rightsOf(principal, snapshot).everywhere('read', 'instance');
      return { status: 200, json: named ? report : verifyReportWithoutNames(report) };
    }),
  );
}
