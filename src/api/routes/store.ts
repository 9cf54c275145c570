// Routes about the store as a whole: its consistency and its backup.

import { MasterKeyStatus } from './master-keys.ts';
import { ServerList } from '../upgrade/servers.ts';
import { VerifyReport, VerifyRequest } from '../verify.ts';
import { json, needs, route } from './route.ts';

const tag = 'store';

export const storeRoutes = {
  verify: route({
    id: 'verify',
    tag,
    method: 'POST',
    path: '/v1/verify',
    access: needs('fleet', 'read'),
    audit: 'applied',
    summary: 'List the inconsistencies of the fleet, with age and cause; with `apply` repair them',
    query: {},
    body: VerifyRequest,
    bodyOptional: true,
    answers: { 200: json(VerifyReport) },
  }),
  formerVerify: route({
    id: 'formerVerify',
    tag,
    method: 'POST',
    path: '/v1/audit',
    formerPath: true,
    access: needs('fleet', 'read'),
    audit: 'applied',
    summary: 'The former path of `/v1/verify`',
    query: {},
    body: VerifyRequest,
    bodyOptional: true,
    answers: { 200: json(VerifyReport) },
  }),
  listServers: route({
    id: 'listServers',
    tag,
    method: 'GET',
    path: '/v1/servers',
    access: needs('fleet', 'read'),
    summary: 'List the servers of the store, with their versions',
    query: {},
    answers: { 200: json(ServerList) },
  }),
  masterKeys: route({
    id: 'masterKeys',
    tag,
    method: 'GET',
    path: '/v1/master-keys',
    access: needs('fleet', 'read'),
    summary: 'Which master keys encrypt the secrets in the store, by id',
    query: {},
    answers: { 200: json(MasterKeyStatus) },
  }),
  backup: route({
    id: 'backup',
    tag,
    method: 'GET',
    path: '/v1/backup',
    access: needs('backup', 'create'), // only callers with full access may see it
    audit: 'first',
    summary: 'Back up the store at one revision, secrets included, in the format that `berth restore` reads',
    query: {},
    answers: { 200: { description: 'lines of JSON', bytes: true } },
  }),
} as const;
