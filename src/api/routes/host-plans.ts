// Routes about plans for hosts: shown first, then applied by their hash.

import { Type } from 'typebox';
import { DrainAnswer, DrainOptions, HostDrain } from '../plans/host-plan.ts';
import { HostRestore, RestoreAnswer, RestoreOptions } from '../plans/host-restore.ts';
import { RebalanceAnswer, RebalanceOptions } from '../plans/rebalance.ts';
import { json, needs, route } from './route.ts';

const closed = { additionalProperties: false } as const;
const tag = 'hosts';
const apply = Type.Optional(
  Type.String({ minLength: 8, maxLength: 64, description: 'the hash of the plan to apply; absent: show the plan' }),
);

export const DrainRequest = Type.Object({ ...DrainOptions.properties, apply }, closed);

export const RestoreRequest = Type.Object({ ...RestoreOptions.properties, apply }, closed);

export const RebalanceRequest = Type.Object({ ...RebalanceOptions.properties, apply }, closed);

export const hostPlanRoutes = {
  drain: route({
    id: 'drainHost',
    tag,
    method: 'POST',
    path: '/v1/hosts/:host/drain',
    access: needs('host', 'drain'),
    audit: 'applied',
    summary: 'Plan to empty a host, or apply the plan: instances leave, and nothing new is placed there',
    query: {},
    body: DrainRequest,
    answers: { 200: json(DrainAnswer) },
    errors: ['NotFound', 'Conflict'],
  }),
  showDrain: route({
    id: 'showDrain',
    tag,
    method: 'GET',
    path: '/v1/hosts/:host/drain',
    access: needs('host', 'read'),
    summary: 'How far the drain of a host is',
    query: {},
    answers: { 200: json(HostDrain) },
    errors: ['NotFound'],
  }),
  cancelDrain: route({
    id: 'cancelDrain',
    tag,
    method: 'DELETE',
    path: '/v1/hosts/:host/drain',
    access: needs('host', 'drain'),
    summary: 'End the drain of a host and open the host again; what has left does not return',
    query: {},
    answers: { 200: json(HostDrain) },
    errors: ['NotFound'],
  }),
  restore: route({
    id: 'restoreHost',
    tag,
    method: 'POST',
    path: '/v1/hosts/:host/restore',
    access: needs('host', 'drain'),
    audit: 'applied',
    summary: 'Plan to move back what drains have moved away from a host, or apply the plan',
    query: {},
    body: RestoreRequest,
    answers: { 200: json(RestoreAnswer) },
    errors: ['NotFound', 'Conflict'],
  }),
  showRestore: route({
    id: 'showRestore',
    tag,
    method: 'GET',
    path: '/v1/hosts/:host/restore',
    access: needs('host', 'read'),
    summary: 'How far the restore of a host is',
    query: {},
    answers: { 200: json(HostRestore) },
    errors: ['NotFound'],
  }),
  cancelRestore: route({
    id: 'cancelRestore',
    tag,
    method: 'DELETE',
    path: '/v1/hosts/:host/restore',
    access: needs('host', 'drain'),
    summary: 'End the restore of a host; what has returned stays',
    query: {},
    answers: { 200: json(HostRestore) },
    errors: ['NotFound'],
  }),
  rebalance: route({
    id: 'rebalance',
    tag,
    method: 'POST',
    path: '/v1/rebalance',
    access: needs('host', 'drain'),
    audit: 'applied',
    summary: 'Plan to empty hosts that are little used, or apply the plan',
    query: {},
    body: RebalanceRequest,
    answers: { 200: json(RebalanceAnswer) },
    errors: ['Conflict'],
  }),
  evacuate: route({
    id: 'evacuateHost',
    tag,
    method: 'POST',
    path: '/v1/hosts/:host/evacuate',
    access: needs('host', 'delete'),
    audit: 'applied',
    summary: 'Plan to give up a host that never returns, or apply the plan: the host is removed',
    query: {},
    body: Type.Object({ apply }, closed),
    answers: { 200: json(DrainAnswer) },
    errors: ['NotFound', 'Conflict'],
  }),
} as const;
