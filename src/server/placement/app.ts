// The Placement API: finds the route of a request, asks whether its caller and version may use it, and answers. Decides nothing.

import { type AuditParts, withLine } from '../audit/trail.ts';
import { contextOf, type Decider } from '../decide.ts';
import type { Logger } from '../../base/log.ts';
import {
  answerOf,
  answerOfFault,
  assertJsonType,
  type Exchange,
  HttpRefusal,
  notFoundText,
  type PlacementAnswer,
  type PlacementRequest,
  type Reply,
} from './exchange.ts';
import { ApiError } from '../../api/errors.ts';
import { badRequest } from '../../core/operations/placement/fault.ts';
import { allocationRoutes } from './routes/allocations.ts';
import { candidateRoutes } from './routes/candidates.ts';
import { describingRoutes } from './routes/traits-and-aggregates.ts';
import { inventoryRoutes } from './routes/inventories.ts';
import { nameRoutes } from './routes/names.ts';
import { modified, providerRoutes } from './routes/providers.ts';
import type { PlacementRoute } from './routes/route.ts';
import { usageRoutes } from './routes/usages.ts';
import { acceptsJson } from './wire/accept.ts';
import { askedVersion, versionMax, versionMin } from './versions.ts';

export const placementRoutes: readonly PlacementRoute[] = [
  { method: 'GET', path: '/', handle: root, needs: 'nothing', acceptsAll: true },
  ...providerRoutes,
  ...inventoryRoutes,
  ...nameRoutes,
  ...describingRoutes,
  ...usageRoutes,
  ...allocationRoutes,
  ...candidateRoutes,
];

export interface PlacementParts {
  readonly decider: Decider;
  readonly log: Logger;
  /** Whether allocation candidates come in random order. Default: always in the same. */
  readonly randomOrder?: boolean;
  /** Absent: what is changed is written down nowhere. */
  readonly audit?: AuditParts | undefined;
}

export class PlacementApp {
  readonly #parts: PlacementParts;

  constructor(parts: PlacementParts) {
    this.#parts = parts;
  }

  async handle(request: PlacementRequest): Promise<PlacementAnswer> {
    const { decider, log, randomOrder = false } = this.#parts;
    const isRoot = request.path === '/' || request.path === '';
    if (!request.caller && !isRoot) return unauthenticated;
    const asked = askedVersion(request.headers['openstack-api-version']);
    if ('status' in asked)
      return answerOfFault(new HttpRefusal(asked.status, asked.why), { request, version: undefined });
    const { version } = asked;
    let route: string | undefined;
    const named = (answer: PlacementAnswer): PlacementAnswer => (route === undefined ? answer : { ...answer, route });
    try {
      const ctx = contextOf(decider);
      const found = routeOf(request);
      route = found.route.path;
      const exchange: Exchange = {
        request,
        version,
        params: found.params,
        decider,
        snapshot: decider.cache,
        ctx,
        randomOrder,
      };
      admit(found.route, exchange);
      const reply = await told(found.route, exchange, this.#parts.audit);
      return named(answerOf(reply, { version, nowMs: ctx.nowMs, origin: request.origin }));
    } catch (error) {
      if (!(error instanceof ApiError || error instanceof HttpRefusal))
        log.error('a request of the Placement API failed', {
          method: request.method,
          path: request.path,
          cause: error,
        });
      return named(answerOfFault(error, { request, version }));
    }
  }
}

/** A change has its line in the audit log before its answer, as through our own API. */
function told(route: PlacementRoute, exchange: Exchange, audit: AuditParts | undefined): Promise<Reply> | Reply {
  const { as: caller, body } = exchange.request;
  if (audit === undefined || caller === undefined || route.method === 'GET') return route.handle(exchange);
  const [, kind = '', ...more] = policyOf(route).split(':');
  const [object = ''] = Object.values(exchange.params);
  const subject = {
    ...{ verb: more.at(-1) ?? 'update', kind },
    ...(object === '' ? {} : { object: /^[\w-]{1,255}$/.test(object) ? object : '(not a name)' }),
    ...(body === undefined || body === '' ? {} : { body }),
  };
  return withLine(audit, caller, subject, () => route.handle(exchange));
}

/** In the form of the original's middleware, which comes before the API itself. */
const unauthenticated: PlacementAnswer = {
  status: 401,
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({
    message:
      'This server could not verify that you are authorized to access the document you requested. Send a token of Berth in the header X-Auth-Token.',
    code: '401 Unauthorized',
    title: 'Unauthorized',
  }),
};

function root({ version }: Exchange): Reply {
  return {
    status: 200,
    json: {
      versions: [
        {
          id: `v1.${versionMin}`,
          max_version: `1.${versionMax}`,
          min_version: `1.${versionMin}`,
          status: 'CURRENT',
          links: [{ rel: 'self', href: '' }],
        },
      ],
    },
    ...modified(version, 'now'),
  };
}

interface Found {
  readonly route: PlacementRoute;
  readonly params: Readonly<Record<string, string>>;
}

function routeOf({ method, path, headers }: PlacementRequest): Found {
  if (Number(headers['content-length'] ?? 0) > 0 && !headers['content-type'])
    throw badRequest('content-type header required when content-length > 0');
  const given = (path === '' ? '/' : path).split('/');
  const here: Found[] = [];
  for (const { route, wanted } of patternsByLength.get(given.length) ?? []) {
    const params = match(wanted, given);
    if (params) here.push({ route, params });
  }
  if (here.length === 0) throw new HttpRefusal(404, notFoundText);
  const found = here.find(({ route }) => route.method === method);
  if (found) return found;
  const allow = here.map(({ route }) => route.method).join(', ');
  throw new HttpRefusal(405, 'The method specified is not allowed for this resource.', { allow });
}

/** The parts of each path, by their number; every request is compared with those of its own length. */
const patternsByLength = Map.groupBy(
  placementRoutes.map((route) => ({ route, wanted: route.path.split('/') })),
  ({ wanted }) => wanted.length,
);

function match(wanted: readonly string[], given: readonly string[]): Record<string, string> | undefined {
  const params: Record<string, string> = {};
  for (let i = 0; i < wanted.length; i++) {
    const [part, here] = [wanted[i] ?? '', given[i] ?? ''];
    if (!part.startsWith(':')) {
      if (part !== here) return undefined;
    } else if (here === '') return undefined;
    else params[part.slice(1)] = decoded(here);
  }
  return params;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // no such character: it names nothing, and is answered so
  }
}

/** In the order in which the original looks at a request. */
function admit(route: PlacementRoute, { request, version }: Exchange): void {
  const { since = 0, before = 404, method } = route;
  const tooEarly = version < since;
  const refuseEarly = (): void => {
    if (tooEarly) throw new HttpRefusal(before, '');
  };
  if (!route.typesFirst) refuseEarly();
  if (method === 'GET' && !route.acceptsAll && !acceptsJson(request.headers['accept']))
    throw new HttpRefusal(406, 'Only application/json is provided');
  if (route.takes === 'json' && version <= (route.takesUntil ?? versionMax)) assertJsonType(request);
  refuseEarly();
  const needs = route.needs ?? (method === 'GET' ? 'read' : 'write');
  const permitted = needs === 'read' ? request.caller?.mayRead : needs === 'write' ? request.caller?.mayWrite : true;
  if (!permitted) throw new HttpRefusal(403, `Policy does not allow ${policyOf(route)} to be performed.`);
}

/** The name that the original has for what a route does: `placement:resource_providers:list`. */
function policyOf({ method, path }: PlacementRoute): string {
  const words = path.split('/').filter((part) => part !== '' && !part.startsWith(':'));
  const last = words.at(-1);
  const verb = {
    GET: /:\w+$/.test(path) && last !== 'allocations' ? 'show' : 'list',
    POST: 'create',
    PUT: 'update',
    DELETE: 'delete',
  };
  const action = path === '/reshaper' ? 'reshape' : path === '/allocations' ? 'manage' : verb[method];
  return ['placement', ...words, ...(last === 'usages' ? [] : [action])].join(':');
}
