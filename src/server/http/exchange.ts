// Before and after a route, for every kind of request: parses it, checks access, and translates errors. HTTP and the simulator's network share
// it; it knows no HTTP library.

import { describeError } from '../../base/log.ts';
import { ApiError } from '../../api/errors.ts';
import { describePrincipal, anonymous, type Principal } from '../../core/access/principal.ts';
import { rightsOf } from '../../core/access/rights-of.ts';
import type { Snapshot } from '../../core/state/snapshot.ts';
import type { Caller } from './caller.ts';
import { type Answer, badPath, findRoute, Query, type Route, type RouteRequest } from './route.ts';

/** 1 MiB: the largest spec is 64 KiB of user-data and some. */
export const bodyBytesMax = 1 << 20;

/**
 * The caller, if the route is open to the caller at all; `host` is the one that the path names. Handlers check rights on each object
 * later. Throws `Unauthenticated` or `Forbidden`.
 */
export function admit(
  { access }: Pick<Route, 'access'>,
  principal: Principal | undefined,
  { host, snapshot }: { readonly host: string | undefined; readonly snapshot: Snapshot },
): Principal {
  if (access === 'open') return principal ?? anonymous;
  if (!principal) throw new ApiError('Unauthenticated', 'a valid token is needed');
  if (access === 'host') {
    if (principal.kind === 'admin' || (principal.kind === 'host' && principal.host === host)) return principal;
    throw new ApiError('Forbidden', `${describePrincipal(principal)} is not that host`);
  }
  if (access === 'self') {
    if (principal.kind === 'admin' || principal.kind === 'token') return principal;
    throw new ApiError('Forbidden', `${describePrincipal(principal)} is not for this`);
  }
  const rights = rightsOf(principal, snapshot);
  const { resource, verbs } = access;
  if (verbs.some((verb) => rights.anywhere(verb, resource))) return principal;
  throw new ApiError('Forbidden', `${describePrincipal(principal)} does not permit "${verbs[0]}" on ${resource}`);
}

/** A request without an HTTP connection. */
export interface RouteCall extends Pick<RouteRequest, 'headers' | 'signal'> {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  /** Read once the route is found. */
  readonly body: () => unknown;
  /** Undefined: it showed no credentials. */
  readonly principal: Principal | undefined;
  readonly caller: Omit<Caller, 'principal'>;
}

/** Finds the route and checks that it is open to the caller, as for any request. */
export async function callRoute(
  { method, path, query, body, principal, caller, headers, signal }: RouteCall,
  { routes, snapshot }: { readonly routes: readonly Route[]; readonly snapshot: Snapshot },
): Promise<Answer> {
  const { route, params } = findRoute(routes, method, path);
  return route.handle({
    params,
    query: new Query(query),
    body: body(),
    headers,
    caller: { ...caller, principal: admit(route, principal, { host: params['host'], snapshot }), trail: undefined },
    signal,
  });
}

/** Translates anything thrown into an `ApiError`. An unexpected error is `Internal`, and its text stays in the log. */
export function toApiError(error: unknown, bytesMax = bodyBytesMax): ApiError {
  if (error instanceof ApiError) return error;
  const status = typeof error === 'object' && error !== null && 'statusCode' in error ? error.statusCode : undefined;
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
  if (status === 413) return new ApiError('PayloadTooLarge', `the body is over ${bytesMax} bytes`, { cause: error });
  if (status === 415)
    return new ApiError(
      'UnsupportedMediaType',
      'the body must be JSON, with the header "content-type: application/json"',
      { cause: error },
    );
  if (code === 'FST_ERR_BAD_URL') return badPath(error);
  if (status === 400 || status === 404 || status === 414)
    return new ApiError('InvalidRequest', describeError(error), { cause: error });
  return new ApiError('Internal', 'Berth failed on this request; its log has the details', { cause: error });
}
