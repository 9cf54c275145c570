// Tokens and shares, which show their text in one answer and never again; and what the caller may do.

import type { CanI, CanIRequest, WhoAmI } from '../../../api/routes/access.ts';
import { accessRoutes as routes } from '../../../api/routes/access.ts';
import { ApiError } from '../../../api/errors.ts';
import { type AnyResource, type Kind, resourceDefinitions } from '../../../api/resources/index.ts';
import { givenRoles } from '../../../core/access/given-roles.ts';
import { may, mayKnow, notFound } from '../../../core/access/may.ts';
import type { Principal } from '../../../core/access/principal.ts';
import { about } from '../../../core/access/question.ts';
import { rightsOf } from '../../../core/access/rights-of.ts';
import { createShare } from '../../../core/operations/access/share.ts';
import { createToken, extendToken } from '../../../core/operations/access/token.ts';
import { replaceOperator } from '../../../core/operations/servers/cluster.ts';
import type { Decision } from '../../../core/operations/decision.ts';
import type { Cache } from '../../../core/state/cache.ts';
import { keys } from '../../../core/state/keys.ts';
import type { Decided, Decider } from '../../decide.ts';
import type { MintToken } from '../identity/mint-token.ts';
import { decideFor } from '../on-behalf.ts';
import type { Answer, Route } from '../route.ts';
import { bind } from './bind.ts';
import { present } from './present.ts';
import { findOne } from './find-resource.ts';
import { shown } from './resource-routes.ts';

interface AccessParts {
  readonly decider: Decider;
  readonly mint: MintToken;
}

export function accessRoutes({ decider, mint }: AccessParts): Route[] {
  const { cache } = decider;
  return [
    bind(routes.createToken, async ({ body: { metadata, spec } }, request) => {
      const { text, ...proof } = mint('s');
      const input = { ...metadata, ...spec, proof };
      const done = await decideFor(decider, request, (snapshot, ctx) =>
        createToken(snapshot, request.caller.principal, input, ctx),
      );
      return issued(done, text, cache);
    }),
    bind(routes.extendToken, async ({ params, body }, request) => {
      const { name } = tokenNamed(params.name, request.caller.principal, cache).metadata;
      const done = await decideFor(decider, request, (snapshot, ctx) =>
        extendToken(snapshot, request.caller.principal, { name, ...body }, ctx),
      );
      return { status: 200, json: present(shown('token', done, cache)) };
    }),
    bind(routes.share, async ({ params, query, body }, request) => {
      const { principal } = request.caller;
      const { key, value } = findOne('instance', cache, {
        caller: request.caller,
        name: params.name,
        project: query.project,
      });
      const { text, ...proof } = mint('s');
      const done = await decideFor(decider, request, (snapshot, ctx) => {
        const instance = snapshot.get('instance', key);
        if (instance?.value.metadata.id !== value.metadata.id) throw notFound('instance', params.name);
        return createShare(snapshot, principal, { instance, request: { ...body, proof } }, ctx);
      });
      return issued(done, text, cache);
    }),
    bind(routes.whoAmI, (_, { caller }) => ({ status: 200, json: whoAmI(caller.principal, cache) })),
    bind(routes.canI, ({ body }, { caller }) => ({ status: 200, json: canI(body, caller.principal, cache) })),
    bind(routes.rotateAdminToken, async ({ body: { digest } }, request) => {
      if (request.caller.principal.kind !== 'admin')
        throw new ApiError('Forbidden', 'only the admin token itself can be used to replace it');
      await decideFor(decider, request, (snapshot, ctx) => replaceOperator(snapshot, digest, ctx));
      return { status: 200, json: {} };
    }),
  ];
}

function issued(done: Decided<Decision>, token: string, cache: Cache): Answer {
  return { status: 201, json: { token, resource: present(shown('token', done, cache)) } };
}

/** By name or id. Throws `NotFound`, also for one that the caller may not know of. */
function tokenNamed(name: string, principal: Principal, cache: Cache): AnyResource {
  const found = cache.committed('token', keys.token(name))?.value ?? byId('token', name, cache);
  if (found && mayKnow(principal, found, cache)) return found;
  throw notFound('token', name);
}

function whoAmI(principal: Principal, cache: Cache): WhoAmI {
  if (principal.kind !== 'token') return { kind: 'admin', roles: [{ role: 'admin' }] };
  const token = cache.get('token', keys.token(principal.name))?.value;
  if (token?.metadata.id !== principal.uid) throw new ApiError('Unauthenticated', 'the token was revoked');
  const { user, share, owner } = token.spec;
  const { expiresAtMs } = rightsOf(principal, cache);
  return {
    kind: 'token',
    name: principal.name,
    tokenId: principal.tokenId,
    ...(user === undefined ? {} : { user }),
    ...(owner === undefined ? {} : { owner: owner.name }),
    ...(share === undefined ? {} : { share }),
    ...(Number.isFinite(expiresAtMs) ? { expiresAtMs } : {}),
    roles: givenRoles(token, cache),
  };
}

function canI({ verb, resource, project, name }: CanIRequest, principal: Principal, cache: Cache): CanI {
  const answer = (reason: string | undefined): CanI => ({
    allowed: reason === undefined,
    ...(reason === undefined ? {} : { reason }),
  });
  if (name === undefined) return answer(may(principal, { verb, resource, project }, cache));
  const kind = kindOf(resource);
  if (kind === undefined) throw new ApiError('InvalidRequest', `a ${resource} has no name`, { field: 'name' });
  const { plural, scope } = resourceDefinitions[kind];
  if (scope === 'project' && project === undefined)
    throw new ApiError('InvalidRequest', `a ${kind} has a project: name it`, { field: 'project' });
  const key = scope === 'project' ? `${plural}/${project}/${name}` : `${plural}/${name}`;
  const found = cache.committed(kind, key)?.value ?? byId(kind, name, cache);
  // What they may not know of does not exist for them.
  if (found === undefined || !mayKnow(principal, found, cache)) return answer(notFound(kind, name).message);
  return answer(may(principal, about(verb, found), cache));
}

function kindOf(resource: string): Kind | undefined {
  return Object.values(resourceDefinitions).find(({ kind }) => kind === resource)?.kind;
}

function byId(kind: Kind, id: string, cache: Cache): AnyResource | undefined {
  if (!id.startsWith(`${resourceDefinitions[kind].idPrefix}_`)) return undefined;
  for (const { value } of cache.listCommitted(kind)) if (value.metadata.id === id) return value;
  return undefined;
}
