// Spares for other systems, in the words of a placement service: amounts are CPUs and MiB, times are seconds.

import { type Static, Type } from 'typebox';
import { DottedName, Name } from '../resources/metadata.ts';
import { SpareReady, SpareSpec } from '../resources/spare.ts';
import { ScheduleRequest } from './schedule.ts';
import { json, needs, route } from './route.ts';

const closed = { additionalProperties: false } as const;
const tag = 'spare';
const project = Type.Optional(Type.String({ description: 'default: `default`' }));
const { timeoutMs: _timeout, periodMs: _period, ...questions } = SpareReady.properties;

export const SpareRequest = Type.Object(
  {
    name: Type.Optional(Type.String({ ...Name, description: 'default: made of its id' })),
    pool: Type.Optional(Type.String({ ...Name, description: 'default: hosts of every pool' })),
    requested_cpu: ScheduleRequest.properties.requested_cpu,
    requested_memory: ScheduleRequest.properties.requested_memory,
    dedicated: ScheduleRequest.properties.dedicated,
    provisioner: SpareSpec.properties.provisioner,
    image: Type.Optional(Type.String({ ...DottedName, description: 'of the instance that the provisioner vm makes' })),
    variables: SpareSpec.properties.variables,
    ready: Type.Optional(
      Type.Object(
        {
          ...questions,
          timeout_s: Type.Integer({ default: 600, minimum: 1, maximum: 86_400, description: 'then it fails' }),
        },
        { ...closed, description: 'one of http, tcp and kubernetes; default: it is ready when it is made' },
      ),
    ),
    ttl_s: Type.Integer({
      default: 3_600,
      minimum: 1,
      maximum: 30 * 24 * 3_600,
      description: 'how long it is held, counted from when it is ready',
    }),
  },
  closed,
);
export type SpareRequest = Static<typeof SpareRequest>;

const orNull = (description: string) => Type.Union([Type.String(), Type.Null()], { description });

export const SpareResult = Type.Object(
  {
    spare_id: Type.String(),
    name: Type.String(),
    status: Type.Enum(['pending', 'provisioning', 'checking', 'ready', 'releasing', 'released', 'failed', 'unknown']),
    message: Type.String({ description: 'what it waits for, or why it has failed' }),
    host: orNull('null: none yet'),
    ip: orNull('null: not known'),
    provisioner: Type.String(),
    held_until: orNull('RFC 3339; null: it is not ready'),
  },
  closed,
);
export type SpareResult = Static<typeof SpareResult>;

export const spareRoutes = {
  prepare: route({
    id: 'prepareSpare',
    tag,
    method: 'POST',
    path: '/spare/prepare',
    access: needs('spare', 'create'),
    summary: 'Prepare a spare on a host with room',
    query: { project },
    body: SpareRequest,
    idempotencyKey: 'repeating a request with the same key prepares no second spare',
    answers: { 202: json(Type.Object({ spare_id: Type.String() }, closed), 'accepted') },
    errors: ['QuotaExceeded', 'AlreadyExists', 'IdempotencyMismatch', 'StoreFull'],
  }),
  list: route({
    id: 'showSpares',
    tag,
    method: 'GET',
    path: '/spare',
    access: needs('spare', 'read'),
    summary: 'The spares of a project, the oldest first',
    query: { project },
    answers: { 200: json(Type.Object({ spares: Type.Array(SpareResult) }, closed)) },
    errors: [],
  }),
  show: route({
    id: 'showSpare',
    tag,
    method: 'GET',
    path: '/spare/:spare',
    access: needs('spare', 'read'),
    summary: 'What became of a spare',
    query: { project },
    answers: { 200: json(SpareResult) },
    errors: ['NotFound'],
  }),
  release: route({
    id: 'releaseSpare',
    tag,
    method: 'DELETE',
    path: '/spare/:spare',
    access: needs('spare', 'delete'),
    summary: 'Undo what was made, and release the room; repeating it changes nothing',
    query: {
      project,
      force: Type.Boolean({
        default: false,
        description: 'without calling the provisioner: what it prepared stays, and its resources count as free',
      }),
    },
    answers: { 200: json(SpareResult) },
    errors: ['NotFound'],
  }),
} as const;
