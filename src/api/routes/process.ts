// Routes about the process itself: alive, ready, version, metrics, and the API's own description. They require no
// token.

import { Type } from 'typebox';
import { anyObject, json, needs, route } from './route.ts';

const tag = 'process';
const ok = Type.Object({ ok: Type.Boolean() });
const Ready = Type.Object({
  ok: Type.Boolean(),
  parts: Type.Optional(
    Type.Array(
      Type.Object({ name: Type.String(), ok: Type.Boolean(), message: Type.String() }, { additionalProperties: false }),
      { description: 'such as the broker; the server is ready without them' },
    ),
  ),
});

export const processRoutes = {
  healthz: route({
    id: 'isAlive',
    tag,
    method: 'GET',
    path: '/healthz',
    access: 'open',
    summary: 'The process answers',
    answers: { 200: json(ok) },
  }),
  readyz: route({
    id: 'isReady',
    tag,
    method: 'GET',
    path: '/readyz',
    access: 'open',
    summary: 'It follows the store',
    query: {
      verbose: Type.Boolean({
        default: false,
        description: 'with the state of the systems around it, for those who may read metrics',
      }),
    },
    answers: { 200: json(Ready) },
    errors: ['Unavailable'],
  }),
  metrics: route({
    id: 'metrics',
    tag,
    method: 'GET',
    path: '/metrics',
    access: needs('metrics', 'read'),
    summary: 'Metrics of the process, in the format of Prometheus',
    answers: { 200: { description: 'done', text: true } },
  }),
  version: route({
    id: 'version',
    tag,
    method: 'GET',
    path: '/v1/version',
    access: 'open',
    summary: 'Its version',
    answers: { 200: json(Type.Object({ version: Type.String() })) },
  }),
  openApi: route({
    id: 'openApi',
    tag,
    method: 'GET',
    path: '/openapi.json',
    access: 'open',
    summary: 'This document',
    answers: { 200: json(anyObject) },
  }),
} as const;
