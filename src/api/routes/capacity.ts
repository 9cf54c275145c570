// Routes about capacity: what hosts have and hold, what waits for room, and what more would fit.

import { Type } from 'typebox';
import { CandidateQuestion, Candidates } from '../candidates.ts';
import { Capacity, CapacityQuestion } from '../capacity.ts';
import { FleetMap } from '../lists/fleet-map.ts';
import { QueueList } from '../queue.ts';
import { HostProviders, LedgerProvider, ProjectTotal, ProjectUsage, UsagePage } from '../usage.ts';
import { queryParameters } from './parameters.ts';
import { json, needs, route } from './route.ts';

const tag = 'capacity';

/** The requirements of a consumer, in a query string. */
const { size, image, pool, driver, profile, cpus, memoryMiB, diskGiB, project, gpus, hostLabels } = queryParameters;
const asked = {
  ...{ size, image, pool, driver, profile },
  ...{ cpus, memoryMiB, diskGiB, project, gpus, hostLabels },
} as const;

/** Parameters of OpenStack Placement, passed on unchanged. */
const placementQuery = {
  names: /^(resources|required|root_required|member_of|in_tree|group_policy|same_subtree)/,
  documented: { resources: queryParameters.resources },
} as const;

export const capacityRoutes = {
  usage: route({
    id: 'listUsage',
    tag,
    method: 'GET',
    path: '/v1/usage',
    access: needs('host', 'read'),
    summary: 'Show the resources of hosts, and how much is allocated',
    query: {
      host: Type.Optional(Type.String({ description: 'only this one' })),
      limit: queryParameters.pageLimit,
      continue: queryParameters.continue,
    },
    answers: { 200: json(UsagePage) },
  }),
  fleetMap: route({
    id: 'getFleetMap',
    tag,
    method: 'GET',
    path: '/v1/fleet-map',
    access: needs('host', 'read'),
    summary: 'Show all hosts as columns: names, pools, states, and how much is allocated',
    query: {
      labels: Type.String({ default: 'zone,rack', maxLength: 1024, description: 'labels of hosts to show, at most 8' }),
      maxAgeMs: Type.Integer({
        minimum: 0,
        maximum: 600_000,
        default: 0,
        description: 'an answer that was made so long ago will do, for pages that many people have open',
      }),
    },
    answers: { 200: json(FleetMap) },
  }),
  providers: route({
    id: 'listHostProviders',
    tag,
    method: 'GET',
    path: '/v1/hosts/:host/providers',
    access: needs('host', 'read'),
    summary: 'Show the providers of a host, and their allocations',
    query: {},
    answers: { 200: json(HostProviders) },
    errors: ['NotFound'],
  }),
  ledgerProvider: route({
    id: 'getLedgerProvider',
    tag,
    method: 'GET',
    path: '/v1/ledger/:provider',
    access: needs('host', 'read'),
    summary: 'Show a provider of the ledger, of a host or of another system, and its consumers',
    query: {},
    answers: { 200: json(LedgerProvider) },
    errors: ['NotFound'],
  }),
  projectTotals: route({
    id: 'listProjectTotals',
    tag,
    method: 'GET',
    path: '/v1/project-totals',
    access: needs('instance', 'read', 'read-placement'),
    summary: 'Show the totals that the instances of each project claim',
    query: { project: queryParameters.ofProject },
    answers: { 200: json(Type.Object({ items: Type.Array(ProjectTotal) })) },
  }),
  projectUsage: route({
    id: 'getProjectUsage',
    tag,
    method: 'GET',
    path: '/v1/projects/:project/usage',
    access: needs('project', 'read'),
    summary: "Show the usage that counts against a project's quota, even if it has none",
    query: {},
    answers: { 200: json(ProjectUsage) },
  }),
  queue: route({
    id: 'getQueue',
    tag,
    method: 'GET',
    path: '/v1/queue',
    access: needs('instance', 'read', 'read-placement'),
    summary: 'List pending instances in queue order, with the reasons',
    query: {
      project: queryParameters.ofProject,
      limit: Type.Integer({ minimum: 1, maximum: 10_000, default: 100, description: 'at most this many' }),
    },
    answers: { 200: json(QueueList) },
  }),
  capacity: route({
    id: 'getCapacity',
    tag,
    method: 'GET',
    path: '/v1/capacity',
    access: needs('instance', 'create', 'read-placement'),
    summary:
      'Show how many more instances fit, of the request or of each size; what is stranded; and the effect of losing hosts',
    query: {
      ...asked,
      losses: Type.Integer({
        minimum: 0,
        maximum: 2,
        default: 0,
        description: 'check whether the fleet survives the loss of this many hosts',
      }),
    },
    moreQuery: placementQuery,
    answers: { 200: json(Capacity) },
  }),
  findCapacity: route({
    id: 'findCapacity',
    tag,
    method: 'POST',
    path: '/v1/capacity',
    access: needs('instance', 'create', 'read-placement'),
    audit: 'no',
    summary: 'The same, for requests that a query string cannot express',
    query: {},
    body: CapacityQuestion,
    answers: { 200: json(Capacity) },
  }),
  candidates: route({
    id: 'listCandidates',
    tag,
    method: 'GET',
    path: '/v1/candidates',
    access: needs('host', 'read'),
    summary: 'List the hosts that fit a request, the best first; nothing is reserved',
    query: {
      ...asked,
      limit: Type.Integer({ minimum: 1, maximum: 1000, default: 20, description: 'at most this many hosts' }),
    },
    moreQuery: placementQuery,
    answers: { 200: json(Candidates) },
  }),
  findCandidates: route({
    id: 'findCandidates',
    tag,
    method: 'POST',
    path: '/v1/candidates',
    access: needs('host', 'read'),
    audit: 'no',
    summary: 'The same, for requests that a query string cannot express',
    query: {},
    body: CandidateQuestion,
    answers: { 200: json(Candidates) },
  }),
} as const;
