// Routes below instances, in addition to those of every resource: batches, explanations, logs, and access to guests.

import type { Verb } from '../access.ts';
import { Type } from 'typebox';
import { Ticket, TicketRequest } from '../access-protocol.ts';
import { errorSchema } from '../error-schema.ts';
import { Explanation } from '../explanation.ts';
import { InstanceUsage, InstanceUsageList } from '../guests/guest-usage.ts';
import { instanceBatchMax } from '../instance-batch.ts';
import { queryParameters } from './parameters.ts';
import { resourceSchemas } from './resource-schemas.ts';
import { json, needs, type QuerySchemas, route } from './route.ts';

const tag = 'instances';
const { project, hostLimit, hostOffset } = queryParameters;
const { resource: Instance, created: NewInstance } = resourceSchemas.instance;

/** 8 MiB: a thousand instances with 8 KiB each, or a hundred with the longest user-data. Parsed in about 100 ms. */
const batchBytesMax = 8 << 20;

export const InstanceBatch = Type.Object({
  items: Type.Array(Type.Union([Type.Object({ instance: Instance }), errorSchema]), {
    description: 'in the order of the request; the field of an error begins with `items[i]`',
  }),
});

export const NewInstanceBatch = Type.Object(
  { items: Type.Array(NewInstance, { minItems: 1, maxItems: instanceBatchMax }) },
  { additionalProperties: false },
);

const wholeNumber = (description: string) =>
  Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description }));

/** A route to a guest: the host answers the handshake, and the server passes the query on. */
function wayIn<const P extends string, Q extends QuerySchemas>(way: {
  readonly id: string;
  readonly path: P;
  readonly summary: string;
  readonly query: Q;
  readonly verb: Verb;
}) {
  const { verb, ...rest } = way;
  return route({
    ...rest,
    tag,
    method: 'GET',
    access: needs('instance', verb),
    query: { project, ...way.query },
    answers: { 101: { description: 'a WebSocket with the subprotocol berth.v1: docs/access.md' } },
    errors: ['NotFound', 'Conflict', 'HostUnreachable', 'TooManyRequests'],
    upgrade: true,
  });
}

export const waysIn = {
  console: wayIn({
    id: 'openConsole',
    path: '/v1/instances/:name/console',
    summary: 'Its serial console',
    verb: 'console',
    query: {
      offset: wholeNumber('begin at this byte of its log'),
      history: wholeNumber('or this many bytes before its end'),
    },
  }),
  exec: wayIn({
    id: 'openExec',
    path: '/v1/instances/:name/exec',
    summary: 'A command in it',
    verb: 'exec',
    query: {
      session: Type.Optional(Type.String({ description: 'one that was begun before' })),
      received: wholeNumber('and how much of its output was received'),
    },
  }),
  ports: wayIn({
    id: 'openPorts',
    path: '/v1/instances/:name/ports/:port',
    summary: 'A TCP connection to one of its ports',
    verb: 'forward',
    query: {},
  }),
  vnc: wayIn({
    id: 'openVnc',
    path: '/v1/instances/:name/vnc',
    summary: 'Its screen, as RFB',
    verb: 'screen',
    query: {},
  }),
} as const;

export const instanceRoutes = {
  batch: route({
    id: 'createInstances',
    tag,
    method: 'POST',
    path: '/v1/instances/batch',
    access: needs('instance', 'create'),
    summary: 'Create many, each accepted or refused on its own; all durable in the response',
    query: {},
    body: NewInstanceBatch,
    bodyCheckedByHandler: true, // item by item, so that an invalid one does not refuse the others
    bodyBytesMax: batchBytesMax,
    idempotencyKey: 'item i counts as a create with the key `<key>/<i>`',
    answers: { 200: json(InstanceBatch) },
    errors: ['PayloadTooLarge'],
  }),
  explain: route({
    id: 'explainInstance',
    tag,
    method: 'GET',
    path: '/v1/instances/:name/explain',
    access: needs('instance', 'read'),
    summary: 'Explain its placement, and what would change it',
    query: { project, limit: hostLimit, continue: hostOffset },
    answers: { 200: json(Explanation) },
    errors: ['NotFound'],
  }),
  usage: route({
    id: 'getInstanceUsage',
    tag,
    method: 'GET',
    path: '/v1/instances/:name/usage',
    access: needs('instance', 'read'),
    summary: 'Show the current CPU, memory, disk and network usage of its guest',
    query: { project },
    answers: { 200: json(InstanceUsage) },
    errors: ['NotFound'],
  }),
  listUsage: route({
    id: 'listInstanceUsage',
    tag,
    method: 'GET',
    path: '/v1/usage/instances',
    access: needs('instance', 'read'),
    summary: 'Show the usage of all measured guests, the highest CPU usage first',
    query: {
      project: queryParameters.ofProject,
      limit: Type.Integer({ minimum: 1, maximum: 100_000, default: 1_000, description: 'at most this many' }),
    },
    answers: { 200: json(InstanceUsageList) },
  }),
  ticket: route({
    id: 'makeTicket',
    tag,
    method: 'POST',
    path: '/v1/instances/:name/tickets',
    access: needs('instance', 'exec', 'console', 'forward', 'screen'),
    audit: 'first',
    summary: 'Issue a ticket for a browser: one connection to the guest, within a minute',
    query: { project },
    body: TicketRequest,
    answers: { 201: json(Ticket, 'made') },
    errors: ['NotFound'],
  }),
  log: route({
    id: 'readLog',
    tag,
    method: 'GET',
    path: '/v1/instances/:name/log',
    access: needs('instance', 'logs'),
    summary: 'Read its console log',
    query: {
      project,
      offset: Type.Integer({
        minimum: 0,
        maximum: Number.MAX_SAFE_INTEGER,
        default: 0,
        description: 'bytes since the first boot; the header berth-log-offset is the offset of the response',
      }),
      follow: Type.Boolean({ default: false, description: 'follow new output' }),
    },
    answers: { 200: { description: 'raw bytes', bytes: true } },
    errors: ['NotFound', 'Conflict', 'HostUnreachable'],
  }),
  ...waysIn,
} as const;
