// Placement for other systems: room on some host, without an instance. A thin dialect over tasks; amounts are CPUs and MiB.

import { type Static, Type } from 'typebox';
import { Name } from '../resources/metadata.ts';
import { json, needs, route } from './route.ts';

const closed = { additionalProperties: false } as const;
const tag = 'schedule';
const project = Type.Optional(
  Type.String({ description: 'default: `default`; without a token, the project of such callers' }),
);

export const ScheduleRequest = Type.Object(
  {
    requested_cpu: Type.Integer({ minimum: 1, maximum: 1_024, description: 'CPUs' }),
    requested_memory: Type.Integer({ minimum: 16, maximum: 67_108_864, description: 'MiB' }),
    requested_pool: Type.Optional(Type.String({ ...Name, description: 'default: hosts of every pool' })),
    dedicated: Type.Boolean({
      default: false,
      description: 'only on hosts that are dedicated; without it on none of them',
    }),
  },
  closed,
);
export type ScheduleRequest = Static<typeof ScheduleRequest>;

/** The same as a message of a broker. */
export const ScheduleMessage = Type.Object(
  {
    ...ScheduleRequest.properties,
    task_id: Type.Optional(Type.String({ minLength: 1, maxLength: 255, description: 'the name of the sender for it' })),
    reply_to: Type.Optional(Type.String({ minLength: 1, maxLength: 255, description: 'queue for the result' })),
  },
  closed,
);
export type ScheduleMessage = Static<typeof ScheduleMessage>;

export const ScheduledRoom = Type.Object(
  {
    name: Type.String({ description: 'of the host' }),
    ip: Type.Union([Type.String(), Type.Null()], { description: 'null: it has told none' }),
    pool: Type.Union([Type.String(), Type.Null()]),
    cpu: Type.Integer({ description: 'CPUs that are held' }),
    memory: Type.Integer({ description: 'MiB that are held' }),
    held_until: Type.String({ description: 'RFC 3339; then the room is released' }),
  },
  closed,
);
export type ScheduledRoom = Static<typeof ScheduledRoom>;

export const ScheduleResult = Type.Union([
  Type.Object({ status: Type.Literal('processing') }, closed),
  Type.Object({ status: Type.Literal('completed'), result: ScheduledRoom }, closed),
  Type.Object(
    {
      status: Type.Literal('failed'),
      error: Type.String({ description: '"No available nodes: " and why, or that the room was released' }),
    },
    closed,
  ),
]);
export type ScheduleResult = Static<typeof ScheduleResult>;

const result = {
  tag,
  method: 'GET',
  access: needs('task', 'read'),
  query: { project },
  answers: { 200: json(ScheduleResult) },
  errors: ['NotFound'],
} as const;

export const scheduleRoutes = {
  create: route({
    id: 'schedule',
    tag,
    method: 'POST',
    path: '/schedule',
    access: needs('task', 'create'),
    summary: 'Hold room on a host',
    query: { project },
    body: ScheduleRequest,
    idempotencyKey: 'repeating a request with the same key holds no second room',
    answers: { 202: json(Type.Object({ task_id: Type.String() }, closed), 'accepted') },
    errors: ['QuotaExceeded', 'IdempotencyMismatch', 'StoreFull'],
  }),
  result: route({ ...result, id: 'scheduleResult', path: '/result/:task', summary: 'What became of a request' }),
  show: route({ ...result, id: 'showSchedule', path: '/schedule/:task', summary: 'The same as /result/{task}' }),
  release: route({
    id: 'releaseSchedule',
    tag,
    method: 'DELETE',
    path: '/schedule/:task',
    access: needs('task', 'delete'),
    summary: 'Release the room; repeating it changes nothing',
    query: { project },
    answers: { 200: json(Type.Object({ status: Type.Literal('released') }, closed)) },
    errors: ['NotFound'],
  }),
} as const;
