// Routes about the store as a whole: its audit and its backup.

import { AuditReport, AuditRequest } from '../audit.ts';
import { json, route } from './route.ts';

const tag = 'store';

export const storeRoutes = {
  audit: route({
    id: 'audit',
    tag,
    method: 'POST',
    path: '/v1/audit',
    verb: 'write',
    summary: 'What of the fleet does not fit together, since when and why; with `apply` its repair',
    query: {},
    body: AuditRequest,
    bodyOptional: true,
    answers: { 200: json(AuditReport) },
  }),
  backup: route({
    id: 'backup',
    tag,
    method: 'GET',
    path: '/v1/backup',
    verb: 'write', // whoever may change everything may see it
    summary: 'Everything in the store at one revision, secrets too, as `berth restore` reads it',
    query: {},
    answers: { 200: { description: 'lines of JSON', bytes: true } },
  }),
} as const;
