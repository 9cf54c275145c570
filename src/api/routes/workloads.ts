// What can be asked of a workload, besides what every resource has.

import { type Static, Type } from 'typebox';
import { PublishedPort } from '../resources/guest.ts';
import { replicasMax, WorkloadTemplate } from '../resources/workload.ts';
import { queryParameters } from './parameters.ts';
import { resourceSchemas } from './resource-schemas.ts';
import { json, needs, route } from './route.ts';

const closed = { additionalProperties: false } as const;
const tag = 'workloads';
const { project, applyPlan: apply } = queryParameters;

export const WorkloadRevisionView = Type.Object(
  {
    number: Type.Integer(),
    createdAtMs: Type.Integer(),
    isPresent: Type.Boolean(),
    isStable: Type.Boolean({ description: 'the newest that was wholly available' }),
    template: WorkloadTemplate,
  },
  closed,
);
export type WorkloadRevisionView = Static<typeof WorkloadRevisionView>;

export const Endpoint = Type.Object(
  {
    instance: Type.String(),
    ordinal: Type.Integer(),
    host: Type.String(),
    address: Type.Optional(Type.String({ description: 'of the guest' })),
    hostAddress: Type.Optional(Type.String({ description: 'where its published ports are' })),
    ports: Type.Array(PublishedPort),
  },
  closed,
);
export type Endpoint = Static<typeof Endpoint>;

export const ScalePlan = Type.Object(
  {
    before: Type.Integer({ description: 'copies that are wanted now' }),
    replicas: Type.Integer({ description: 'copies that are wanted afterwards' }),
    create: Type.Integer({ description: 'copies' }),
    remove: Type.Array(Type.String({ description: 'name of an instance' }), {
      description: 'the first to go comes first',
    }),
    hash: Type.String({ description: 'names this plan when it is applied' }),
    applied: Type.Boolean(),
  },
  closed,
);
export type ScalePlan = Static<typeof ScalePlan>;

export const workloadRoutes = {
  history: route({
    id: 'listWorkloadRevisions',
    tag,
    method: 'GET',
    path: '/v1/workloads/:name/revisions',
    access: needs('workload', 'read'),
    summary: 'The templates that it had, the oldest first; ten are kept',
    query: { project },
    answers: { 200: json(Type.Object({ items: Type.Array(WorkloadRevisionView) }, closed)) },
    errors: ['NotFound'],
  }),
  undo: route({
    id: 'undoWorkload',
    tag,
    method: 'POST',
    path: '/v1/workloads/:name/undo',
    access: needs('workload', 'update'),
    summary: 'Go back to a former template, under a new number',
    query: { project, dryRun: queryParameters.dryRunOfChange },
    body: Type.Object(
      {
        to: Type.Optional(Type.Integer({ minimum: 1, description: 'number of a revision; default: the one before' })),
        apply,
      },
      closed,
    ),
    answers: { 200: json(resourceSchemas.workload.affecting) },
    errors: ['NotFound', 'Conflict', 'StoreFull'],
  }),
  scale: route({
    id: 'scaleWorkload',
    tag,
    method: 'POST',
    path: '/v1/workloads/:name/scale',
    access: needs('workload', 'update'),
    summary: 'Change how many copies are wanted; the answer names those that go',
    query: {
      project,
      dryRun: Type.Boolean({ default: false, description: 'change nothing, and say what would go' }),
    },
    body: Type.Object({ replicas: Type.Integer({ minimum: 0, maximum: replicasMax }), apply }, closed),
    answers: { 200: json(ScalePlan) },
    errors: ['NotFound', 'Conflict', 'StoreFull'],
  }),
  endpoints: route({
    id: 'listWorkloadEndpoints',
    tag,
    method: 'GET',
    path: '/v1/workloads/:name/endpoints',
    access: needs('workload', 'read'),
    summary: 'Addresses and ports of its copies that are ready',
    query: {
      project,
      watch: Type.Boolean({ default: false, description: 'the whole list again, a line for each change' }),
    },
    answers: {
      200: {
        description: 'the list, or with `watch` one list per line',
        json: Type.Object({ items: Type.Array(Endpoint) }, closed),
        lines: Type.Object({ items: Type.Array(Endpoint) }, closed),
      },
    },
    errors: ['NotFound'],
  }),
} as const;
