// Routes about one host, in addition to those of every resource.

import { HostToken } from '../host-token.ts';
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
} as const;
