// `/v1/audit`: what of the fleet does not fit together, and its repair.

import { storeRoutes } from '../../../api/routes/store.ts';
import type { Auditor } from '../../auditor.ts';
import { bind } from './bind.ts';
import type { Route } from '../route.ts';

export function auditRoutes(auditor: Auditor): Route[] {
  return [
    bind(storeRoutes.audit, async ({ body }) => {
      return { status: 200, json: await auditor.report(body) };
    }),
  ];
}
