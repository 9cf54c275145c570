// Routes by which machines become hosts, and by which anybody learns which authority a fleet has.

import {
  Authorities,
  IssuedCertificate,
  JoinRequest,
  JoinTokenList,
  JoinTokenRequest,
  NewJoinToken,
  RenewRequest,
} from '../joining.ts';
import { anyObject, json, needs, route } from './route.ts';

const tag = 'hosts';

export const joinRoutes = {
  authorities: route({
    id: 'getAuthorities',
    tag,
    method: 'GET',
    path: '/v1/ca',
    access: 'open',
    summary: "Root certificates of the fleet's own authority",
    query: {},
    answers: { 200: json(Authorities) },
    errors: ['NotFound'],
  }),
  createToken: route({
    id: 'createJoinToken',
    tag,
    method: 'POST',
    path: '/v1/join-tokens',
    access: needs('host', 'issue-token'),
    summary: 'Create a token with which machines become hosts',
    query: {},
    body: JoinTokenRequest,
    answers: { 201: json(NewJoinToken, 'created') },
  }),
  listTokens: route({
    id: 'listJoinTokens',
    tag,
    method: 'GET',
    path: '/v1/join-tokens',
    access: needs('host', 'issue-token'),
    summary: 'Join tokens, without their secrets',
    query: {},
    answers: { 200: json(JoinTokenList) },
  }),
  deleteToken: route({
    id: 'deleteJoinToken',
    tag,
    method: 'DELETE',
    path: '/v1/join-tokens/:name',
    access: needs('host', 'issue-token'),
    summary: 'Delete a join token; hosts that have joined with it stay',
    query: {},
    answers: { 200: json(anyObject) },
    errors: ['NotFound'],
  }),
  join: route({
    id: 'joinHost',
    tag: 'agent',
    method: 'POST',
    path: '/v1/join',
    access: 'open', // its body holds a join token
    summary: 'Become a host: the certificate for its agent',
    query: {},
    body: JoinRequest,
    answers: { 200: json(IssuedCertificate) },
    errors: ['Unauthenticated', 'Conflict'],
  }),
  renew: route({
    id: 'renewHostCertificate',
    tag: 'agent',
    method: 'POST',
    path: '/v1/renew',
    access: 'open', // its body is signed by the key of a host
    summary: 'The next certificate of a host',
    query: {},
    body: RenewRequest,
    answers: { 200: json(IssuedCertificate) },
    errors: ['Unauthenticated'],
  }),
} as const;
