// `/v1/audit`: what of the fleet does not fit together, and its repair.

import { AuditRequest } from '../../api/audit.ts';
import { parse } from '../../api/parse.ts';
import type { Auditor } from '../auditor.ts';
import type { Route } from './route.ts';

export function auditRoutes(auditor: Auditor): Route[] {
  return [
    {
      method: 'POST',
      path: '/v1/audit',
      verb: 'write',
      async handle({ query, body }) {
        query.only();
        return { status: 200, json: await auditor.report(parse(AuditRequest, body)) };
      },
    },
  ];
}
