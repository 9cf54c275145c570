// Routes below jobs, in addition to those of every resource: cancel, retry, log, artifacts; and those on which agents
// send what runs produce.

import { Type } from 'typebox';
import { queryParameters } from './parameters.ts';
import { resourceSchemas } from './resource-schemas.ts';
import { json, needs, route } from './route.ts';

const tag = 'jobs';
const { project } = queryParameters;
const Job = resourceSchemas.job.resource;

const attempt = Type.Optional(
  Type.Integer({ minimum: 1, maximum: 16, description: 'number of the attempt; default: the last' }),
);

/** What a host may send of a run. */
export const runPart = Type.Enum(['log', 'artifacts'], { description: 'log, or artifacts as a tar archive' });

export const jobRoutes = {
  cancel: route({
    id: 'cancelJob',
    tag,
    method: 'POST',
    path: '/v1/jobs/:name/cancel',
    access: needs('job', 'update'),
    summary: 'Cancel it: SIGTERM, after a grace period SIGKILL, and its instance is removed',
    query: { project },
    answers: { 200: json(Job) },
    errors: ['NotFound', 'Conflict'],
  }),
  retry: route({
    id: 'retryJob',
    tag,
    method: 'POST',
    path: '/v1/jobs/:name/retry',
    access: needs('job', 'create'),
    summary: 'Create a new job with the spec of one that has ended',
    query: { project },
    answers: { 201: json(Job) },
    errors: ['NotFound', 'Conflict', 'StoreFull'],
  }),
  log: route({
    id: 'readJobLog',
    tag,
    method: 'GET',
    path: '/v1/jobs/:name/log',
    access: needs('job', 'logs'),
    summary:
      'Read its output, each line as TIME STREAM TAG TEXT: stdout or stderr, F for a full line, P for a part of one',
    query: {
      project,
      attempt,
      offset: Type.Integer({
        minimum: 0,
        maximum: Number.MAX_SAFE_INTEGER,
        default: 0,
        description: 'bytes since its beginning',
      }),
      follow: Type.Boolean({ default: false, description: 'follow new output until the attempt has ended' }),
    },
    answers: { 200: { description: 'raw bytes', bytes: true } },
    errors: ['NotFound'],
  }),
  artifacts: route({
    id: 'readJobArtifacts',
    tag,
    method: 'GET',
    path: '/v1/jobs/:name/artifacts',
    access: needs('job', 'logs'),
    summary: 'Download its artifacts as a tar archive',
    query: { project, attempt },
    answers: { 200: { description: 'a tar archive', bytes: true } },
    errors: ['NotFound'],
  }),
} as const;

export const runRoutes = {
  put: route({
    id: 'sendRunPart',
    tag: 'agent',
    method: 'PUT',
    path: '/v1/hosts/:host/runs/:name/:part',
    access: 'host',
    summary: 'Append bytes of the log or the artifacts of a run; `:name` is the id of its instance',
    query: {
      epoch: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description: 'of the session' }),
      incarnation: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description: 'of the instance' }),
      offset: Type.Integer({
        minimum: 0,
        maximum: Number.MAX_SAFE_INTEGER,
        description: 'where the body begins; what is known already is ignored, and a gap is refused with Conflict',
      }),
    },
    body: 'bytes',
    answers: { 200: json(Type.Object({ size: Type.Integer({ description: 'bytes that are durable' }) })) },
    errors: ['NotFound', 'StaleEpoch', 'Conflict', 'PayloadTooLarge', 'StoreFull'],
  }),
} as const;
