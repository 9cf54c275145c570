// Routes with an audit log around them: writes have their lines before the answer, and what has an effect outside the store, or shows
// secrets, has its line first. Reads of anything else, heartbeats and reports pass untouched.

import type { Needs } from '../../api/routes/route.ts';
import { isRecord } from '../../base/is-record.ts';
import type { Answer, Route, RouteRequest } from '../http/route.ts';
import { isResource } from '../http/routes/present.ts';
import { holdsSecrets } from '../http/routes/without-secrets.ts';
import { type AuditParts, type AuditSubject, isTold, openTrail, withLine } from './trail.ts';

export function auditedRoutes(routes: readonly Route[], parts: AuditParts | undefined): readonly Route[] {
  return parts === undefined ? routes : routes.map((route) => auditedRoute(route, parts));
}

function auditedRoute(route: Route, parts: AuditParts): Route {
  const { access, method, audit } = route;
  if (access === 'host' || audit === 'no') return route;
  if (audit === 'first') return { ...route, handle: (request) => afterLine(route, request, parts) };
  if (method === 'GET')
    return showsOne(route) ? { ...route, handle: (request) => shown(route, request, parts) } : route;
  // Of what is open to everyone, only what has an effect is written down; a refusal by the part that answers.
  if (access === 'open') return { ...route, handle: (request) => inTrail(route, request, parts) };
  return { ...route, handle: (request) => written(route, request, parts) };
}

function written(route: Route, request: RouteRequest, parts: AuditParts): Promise<Answer> | Answer {
  if (!isWrite(route, request)) return route.handle(request);
  return withLine(parts, request.caller, subjectOf(route, request), () => route.handle(request));
}

function inTrail(route: Route, request: RouteRequest, parts: AuditParts): Promise<Answer> | Answer {
  openTrail(parts, request.caller, subjectOf(route, request));
  return route.handle(request);
}

async function afterLine(route: Route, request: RouteRequest, parts: AuditParts): Promise<Answer> {
  const trail = openTrail(parts, request.caller, subjectOf(route, request));
  await trail.begins();
  try {
    return await route.handle(request);
  } catch (error) {
    if (!isTold(error)) await trail.failed(error);
    throw error;
  }
}

/** A resource that leaves with what lists hide. */
async function shown(route: Route, request: RouteRequest, parts: AuditParts): Promise<Answer> {
  const answer = await route.handle(request);
  const json = 'json' in answer ? answer.json : undefined;
  if (!isResource(json) || !holdsSecrets(json)) return answer;
  const { id, project, name } = json.metadata;
  const subject = { verb: 'read-user-data', kind: json.kind, project, object: name, objectId: id };
  await openTrail(parts, request.caller, subject).begins();
  return answer;
}

function showsOne({ path }: Route): boolean {
  return (
    path === '/v1/instances/:name' ||
    path === '/v1/workloads/:name' ||
    path === '/v1/warm-pools/:name' ||
    path === '/v1/jobs/:name' ||
    path === '/v1/job-templates/:name'
  );
}

function isWrite({ audit }: Route, { query, body }: RouteRequest): boolean {
  if (audit === 'applied') return isRecord(body) && (body['apply'] === true || typeof body['apply'] === 'string');
  return !query.all('dryRun').some((value) => value !== 'false');
}

function subjectOf(route: Route, { params, query, body }: RouteRequest): AuditSubject & { readonly body?: string } {
  const { access, takesBytes, takesUnparsedJson } = route;
  const { verb, kind } =
    typeof access === 'string'
      ? { verb: verbOfPath(route.path), kind: undefined }
      : subjectOfNeeds(route.path, access, body);
  const metadata = isRecord(body) && isRecord(body['metadata']) ? body['metadata'] : {};
  const object = params['name'] ?? params['host'] ?? params['hook'] ?? metadata['name'];
  const project = query.all('project')[0] ?? metadata['project'];
  const hasBody = !takesBytes && !takesUnparsedJson && isRecord(body) && Object.keys(body).length > 0;
  return {
    verb,
    kind,
    project: nameIn(project),
    object: nameIn(object),
    ...(hasBody ? { body: JSON.stringify(body) } : {}),
  };
}

/** A name or an id. What cannot be one may be a secret in the wrong place: it is not written down. */
function nameIn(text: unknown): string | undefined {
  if (typeof text !== 'string') return undefined;
  return /^[a-z0-9][a-z0-9._-]{0,127}$/.test(text) ? text : '(not a name)';
}

/** Of a ticket, what it is for. */
function subjectOfNeeds(path: string, { resource: kind, verbs }: Needs, body: unknown): { verb: string; kind: string } {
  if (path.endsWith('/shares')) return { verb: 'issue-token', kind };
  if (!path.endsWith('/tickets')) return { verb: verbs[0] ?? 'update', kind };
  const way = isRecord(body) ? body['way'] : undefined;
  return { verb: `ticket-${verbOfWay(typeof way === 'string' ? way : '')}`, kind };
}

/** `console`, `ports/80` → the verb that it needs. */
export function verbOfWay(way: string): 'console' | 'screen' | 'forward' | 'exec' {
  switch (way.split('/', 1)[0]) {
    case 'console':
      return 'console';
    case 'vnc':
      return 'screen';
    case 'ports':
      return 'forward';
    default:
      return 'exec';
  }
}

/** `/v1/login/code` → `login`. */
function verbOfPath(path: string): string {
  return path.split('/')[2] ?? '';
}
