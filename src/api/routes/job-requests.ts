// Routes of the intake: a JobRequest without a broker, and the messages that made no job.

import { Type } from 'typebox';
import { DeadLetter } from '../dead-letter.ts';
import { JobRequest, jobRequestBytesMax } from '../job-request.ts';
import { queryParameters } from './parameters.ts';
import { resourceSchemas } from './resource-schemas.ts';
import { json, needs, route } from './route.ts';

const tag = 'jobs';
const { project } = queryParameters;
const Job = resourceSchemas.job.resource;

export const jobRequestRoutes = {
  create: route({
    id: 'createJobRequest',
    tag,
    method: 'POST',
    path: '/v1/job-requests',
    access: needs('job', 'create'),
    summary: 'Create the job of a JobRequest; one with the same request_id is created once',
    query: { project },
    body: JobRequest,
    bodyCheckedByHandler: true,
    bodyBytesMax: jobRequestBytesMax,
    answers: { 200: json(Job, 'its job exists already'), 201: json(Job, 'created') },
    errors: ['Conflict', 'IdempotencyMismatch', 'StoreFull'],
  }),
} as const;

export const deadLetterRoutes = {
  list: route({
    id: 'listDeadLetters',
    tag,
    method: 'GET',
    path: '/v1/dead-letters',
    access: needs('dead-letter', 'read'),
    summary: 'List the messages of the broker that made no job',
    answers: {
      200: json(
        Type.Object({
          items: Type.Array(DeadLetter),
          more: Type.Boolean({ description: 'there are others behind these in the queue' }),
        }),
      ),
    },
    errors: ['Conflict', 'Unavailable'],
  }),
  show: route({
    id: 'showDeadLetter',
    tag,
    method: 'GET',
    path: '/v1/dead-letters/:name',
    access: needs('dead-letter', 'read'),
    summary: 'Read one, with its body',
    answers: { 200: json(DeadLetter) },
    errors: ['NotFound', 'Conflict', 'Unavailable'],
  }),
  retry: route({
    id: 'retryDeadLetter',
    tag,
    method: 'POST',
    path: '/v1/dead-letters/:name/retry',
    access: needs('dead-letter', 'update'),
    summary: 'Publish it again where it came from, and remove it',
    answers: { 200: json(DeadLetter) },
    errors: ['NotFound', 'Conflict', 'Unavailable'],
  }),
  drop: route({
    id: 'dropDeadLetter',
    tag,
    method: 'DELETE',
    path: '/v1/dead-letters/:name',
    access: needs('dead-letter', 'delete'),
    summary: 'Remove it',
    answers: { 200: json(DeadLetter) },
    errors: ['NotFound', 'Conflict', 'Unavailable'],
  }),
} as const;
