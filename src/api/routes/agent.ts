// Routes for hosts' agents only. The token of a host gives access to the routes of that host only.

import { Type } from 'typebox';
import {
  AssignmentEvent,
  Heartbeat,
  HeartbeatAnswer,
  MoveManifest,
  Registration,
  ReportResults,
  Reports,
  Session,
} from '../agent-protocol.ts';
import { resourceSchemas } from './resource-schemas.ts';
import { json, route } from './route.ts';

const tag = 'agent';
const errors = ['StaleEpoch', 'Conflict'] as const;
const epoch = Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description: 'of the session' });

const moveId = Type.String({ minLength: 1, maxLength: 64, description: 'of the migration' });

export const agentRoutes = {
  register: route({
    id: 'registerHost',
    tag,
    method: 'PUT',
    path: '/v1/hosts/:host/session',
    access: 'host',
    summary: 'Begin a session',
    query: {},
    body: Registration,
    bodyOfOtherVersions: true,
    answers: { 200: json(Session) },
    errors,
  }),
  heartbeat: route({
    id: 'heartbeat',
    tag,
    method: 'POST',
    path: '/v1/hosts/:host/heartbeat',
    access: 'host',
    summary: 'Show that the agent is alive',
    query: {},
    body: Heartbeat,
    bodyOfOtherVersions: true,
    answers: { 200: json(HeartbeatAnswer) },
    errors,
  }),
  report: route({
    id: 'reportGuests',
    tag,
    method: 'POST',
    path: '/v1/hosts/:host/reports',
    access: 'host',
    summary: 'Report the state of guests',
    query: {},
    body: Reports,
    bodyOfOtherVersions: true,
    answers: { 200: json(ReportResults) },
    errors,
  }),
  assignments: route({
    id: 'watchAssignments',
    tag,
    method: 'GET',
    path: '/v1/hosts/:host/assignments',
    access: 'host',
    summary: 'Stream what the host should run',
    query: { epoch },
    answers: { 200: { description: 'done', lines: AssignmentEvent } },
    errors,
  }),
  images: route({
    id: 'listHostImages',
    tag,
    method: 'GET',
    path: '/v1/hosts/:host/images',
    access: 'host',
    summary: 'Images that hosts may need',
    query: {},
    answers: {
      200: json(
        Type.Object({
          items: Type.Array(resourceSchemas.image.resource),
          revision: Type.Integer(),
          pool: Type.Optional(Type.String({ description: 'that the host is in' })),
        }),
      ),
    },
  }),
  imageContent: route({
    id: 'readImageContent',
    tag,
    method: 'GET',
    path: '/v1/hosts/:host/image-content/:hex',
    access: 'host',
    summary: 'A file that was uploaded; ranges are possible',
    query: {},
    answers: { 200: { description: 'raw bytes', bytes: true }, 206: { description: 'the rest of them', bytes: true } },
    errors: ['NotFound'],
  }),
  moveManifest: route({
    id: 'readMoveManifest',
    tag,
    method: 'GET',
    path: '/v1/hosts/:host/moves/:name',
    access: 'host',
    summary: 'The files of a guest that moves to this host',
    query: { epoch, id: moveId },
    answers: { 200: json(MoveManifest) },
    errors: ['NotFound', 'StaleEpoch', 'Conflict', 'HostUnreachable'],
  }),
  readMove: route({
    id: 'readMove',
    tag,
    method: 'GET',
    path: '/v1/hosts/:host/moves/:name/:file',
    access: 'host',
    summary: 'A piece of such a file, after its SHA-256; the digest alone for zeros',
    query: {
      epoch,
      id: moveId,
      offset: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description: 'in bytes' }),
      length: Type.Integer({ minimum: 1, maximum: 1 << 26, description: 'in bytes' }),
    },
    answers: { 200: { description: 'raw bytes', bytes: true } },
    errors: ['NotFound', 'StaleEpoch', 'Conflict', 'HostUnreachable'],
  }),
  link: route({
    id: 'openLink',
    tag,
    method: 'GET',
    path: '/v1/hosts/:host/link',
    access: 'host',
    summary: 'The connection on which the agent answers the control plane, by HTTP/2',
    query: { epoch },
    answers: { 101: { description: 'the protocol berth-agent/1' } },
    errors: ['NotFound', 'StaleEpoch'],
    upgrade: true,
  }),
} as const;
