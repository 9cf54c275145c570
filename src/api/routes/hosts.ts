// Routes about one host, in addition to those of every resource.

import { Type } from 'typebox';
import { HostToken } from '../host-token.ts';
import { resourceSchemas } from './resource-schemas.ts';
import { json, needs, route } from './route.ts';

export const hostRoutes = {
  token: route({
    id: 'getHostToken',
    tag: 'hosts',
    method: 'POST',
    path: '/v1/hosts/:host/token',
    access: needs('host', 'issue-token'), // a client with write access may act for a host
    audit: 'first',
    summary: "The token for a host's agent; the host need not exist yet",
    query: {},
    answers: { 200: json(HostToken) },
  }),
  declareDown: route({
    id: 'declareHostDown',
    tag: 'hosts',
    method: 'POST',
    path: '/v1/hosts/:host/declare-down',
    access: needs('host', 'drain'),
    summary: 'Declares that a silent host is down and that none of its guests runs; its instances are replaced',
    query: {},
    body: Type.Object(
      { reason: Type.String({ default: '', maxLength: 512, description: 'how this is known' }) },
      { additionalProperties: false },
    ),
    answers: { 200: json(resourceSchemas.host.resource) },
    errors: ['NotFound', 'Conflict'],
  }),
} as const;
