// Routes about the maintenance of several hosts. There is one roll in a fleet.

import { Type } from 'typebox';
import { HostRoll, RollAnswer, RollOptions } from '../plans/host-roll.ts';
import { DrainRequest } from './host-plans.ts';
import { json, needs, route } from './route.ts';

const closed = { additionalProperties: false } as const;
const tag = 'hosts';
const path = '/v1/host-roll';

export const RollRequest = Type.Object({ ...RollOptions.properties, apply: DrainRequest.properties.apply }, closed);

export const hostRollRoutes = {
  roll: route({
    id: 'rollHosts',
    tag,
    method: 'POST',
    path,
    access: needs('host', 'drain'),
    audit: 'applied',
    summary: 'Plan the maintenance of several hosts, group by group, or apply the plan: hosts are emptied and rebooted',
    query: {},
    body: RollRequest,
    answers: { 200: json(RollAnswer) },
    errors: ['NotFound', 'Conflict'],
  }),
  showRoll: route({
    id: 'showRoll',
    tag,
    method: 'GET',
    path,
    access: needs('host', 'read'),
    summary: 'How far the maintenance of hosts is',
    query: {},
    answers: { 200: json(HostRoll) },
    errors: ['NotFound'],
  }),
  pauseRoll: route({
    id: 'pauseRoll',
    tag,
    method: 'POST',
    path: '/v1/host-roll/pause',
    access: needs('host', 'drain'),
    summary: 'Pause the maintenance of hosts, or resume it, also after a failure: its step is repeated then',
    query: {},
    body: Type.Object({ paused: Type.Boolean({ description: 'true: no other host begins' }) }, closed),
    answers: { 200: json(HostRoll) },
    errors: ['NotFound', 'Conflict'],
  }),
  cancelRoll: route({
    id: 'cancelRoll',
    tag,
    method: 'DELETE',
    path,
    access: needs('host', 'drain'),
    summary: 'End the maintenance of hosts and open those that are closed for it',
    query: {},
    answers: { 200: json(HostRoll) },
    errors: ['NotFound'],
  }),
} as const;
