// Routes about the store as a whole: its audit and its backup.

import { AuditReport, AuditRequest } from '../audit.ts';
import { json, needs, route } from './route.ts';

const tag = 'store';

export const storeRoutes = {
  audit: route({
    id: 'audit',
    tag,
    method: 'POST',
    path: '/v1/audit',
    access: needs('fleet', 'read'),
    summary: 'List the inconsistencies of the fleet, with age and cause; with `apply` repair them',
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
    access: needs('backup', 'create'), // only callers with full access may see it
    summary: 'Back up the store at one revision, secrets included, in the format that `berth restore` reads',
    query: {},
    answers: { 200: { description: 'lines of JSON', bytes: true } },
  }),
} as const;
