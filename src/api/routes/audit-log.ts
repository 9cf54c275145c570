// Routes of the audit log of the server that answers.

import { Type } from 'typebox';
import { AuditLogCheck, AuditLogPage } from '../audit/audit-log.ts';
import { queryParameters } from './parameters.ts';
import { json, needs, route } from './route.ts';

const tag = 'audit-log';

export const auditLogRoutes = {
  read: route({
    id: 'readAuditLog',
    tag,
    method: 'GET',
    path: '/v1/audit-log',
    access: needs('audit', 'read-audit', 'read-placement'),
    summary: 'Read who did what, oldest first; each server has its own log',
    query: {
      since: Type.Optional(
        Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description: 'milliseconds since 1970' }),
      ),
      who: Type.Optional(Type.String({ description: '`ci`, `token/ci`, the id of a token, or a login' })),
      object: Type.Optional(Type.String({ description: 'name or id of an object' })),
      trace: Type.Optional(
        Type.String({ pattern: '^[0-9a-f]{32}$', description: '32 hexadecimal digits: the `traceId` of an error' }),
      ),
      limit: Type.Integer({ minimum: 1, maximum: 5000, default: 500, description: 'at most this many' }),
      continue: queryParameters.continue,
    },
    answers: { 200: json(AuditLogPage) },
    errors: ['NotFound'],
  }),
  verify: route({
    id: 'verifyAuditLog',
    tag,
    method: 'GET',
    path: '/v1/audit-log/check',
    access: needs('audit', 'read-audit', 'read-placement'),
    summary: 'Compare the files of the audit log with their hash chain and with what the store knows of them',
    query: {},
    answers: { 200: json(AuditLogCheck) },
    errors: ['NotFound'],
  }),
} as const;
