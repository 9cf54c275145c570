// `/v1/verify`: what of the fleet does not fit together, and its repair.

import { storeRoutes } from '../../../api/routes/store.ts';
import type { Verifier } from '../../verifier.ts';
import { bind } from './bind.ts';
import type { Route } from '../route.ts';

export function verifyRoutes(verifier: Verifier): Route[] {
  return [storeRoutes.verify, storeRoutes.formerVerify].map((definition) =>
    bind(definition, async ({ body }) => ({ status: 200, json: await verifier.report(body) })),
  );
}
