// One request of the Placement API and its answer. Knows no HTTP library: Fastify serves it, and the simulator calls it.

import { STATUS_CODES } from 'node:http';
import { ApiError } from '../../api/errors.ts';
import { badRequest, PlacementFault, placementCodes } from '../../core/operations/placement/fault.ts';
import type { Context } from '../../core/state/context.ts';
import type { Snapshot } from '../../core/state/snapshot.ts';
import type { Decider } from '../decide.ts';
import type { Caller } from '../http/caller.ts';
import { requestTraceId } from '../tracing/request-trace.ts';
import { formAt, since, type ByVersion } from './versions.ts';
import { type RefusalForm, refusalFormOf } from './wire/accept.ts';
import { type Schema, schemaFault } from './wire/json-schema.ts';

/** A request as it came. */
export interface PlacementRequest {
  readonly method: string;
  /** Below the mount point, without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** Undefined: it is not UTF-8. */
  readonly body: string | undefined;
  /** Of `X-Auth-Token`, or of any other credentials; undefined: none that count. */
  readonly caller: PlacementCaller | undefined;
  /** The same for the audit log; absent: the request comes over no connection. */
  readonly as?: Caller;
  /** Where the API is mounted: '' or `/placement`. */
  readonly mount: string;
  /** `http://host:port`, as the client wrote it. */
  readonly origin: string;
  readonly requestId: string;
}

/** Who asks, and what that permits. */
export interface PlacementCaller {
  readonly mayRead: boolean;
  readonly mayWrite: boolean;
  /** The project whose usage it may read, whatever else it may. */
  readonly project?: string;
}

export interface PlacementAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** As `/allocations/:consumer`; absent: the path names none. */
  readonly route?: string;
}

/** What a route answers, before headers that all answers have. */
export interface Reply {
  readonly status: number;
  readonly json?: unknown;
  readonly location?: string;
  /** When what it shows last changed, in milliseconds since 1970; `unknown`: it has no date; absent: nothing is said about caching either. */
  readonly modifiedMs?: number | 'now' | 'unknown';
}

/** A request on its way through a route. */
export interface Exchange {
  readonly request: PlacementRequest;
  readonly version: number;
  readonly params: Readonly<Record<string, string>>;
  readonly decider: Decider;
  readonly snapshot: Snapshot;
  readonly ctx: Context;
  /** Candidates come in random order. */
  readonly randomOrder: boolean;
}

/** A refusal with a status that our own API has no code for. */
export class HttpRefusal extends Error {
  override name = 'HttpRefusal';
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message);
    this.status = status;
    this.headers = headers;
  }
}

/** Refuses a body of another media type. */
export function assertJsonType({ headers }: Pick<PlacementRequest, 'headers'>): void {
  const type = headers['content-type']?.split(';')[0]?.trim().toLowerCase();
  if (type === 'application/json') return;
  throw new HttpRefusal(415, `The media type ${type ?? 'None'} is not supported, use application/json`);
}

/** The body, which is as `schema` says. */
export function jsonBody<T>({ request }: Exchange, schema: Schema): T {
  let data: unknown;
  if (request.body === undefined) throw badRequest('Malformed JSON: the body is not UTF-8');
  try {
    data = JSON.parse(request.body);
  } catch (error) {
    throw badRequest(`Malformed JSON: ${error instanceof Error ? error.message : 'unreadable'}`);
  }
  const fault = schemaFault(data, schema);
  if (fault !== undefined) throw badRequest(`JSON does not validate: ${fault}`);
  return data as T; // the schema says so
}

/** The form of a route's body or query at the version asked for; the router has refused versions that have none. */
export function form<T>({ version }: Exchange, forms: ByVersion<T>): T {
  const found = formAt(forms, version);
  if (found === undefined) throw new HttpRefusal(404, notFoundText);
  return found;
}

export const notFoundText = '';

/** The provider that the path names. */
export function uuidOf({ params }: Pick<Exchange, 'params'>): string {
  return params['uuid'] ?? '';
}

/** Checks the query; of a repeated parameter the last value. */
export function checkQuery({ request: { query } }: Exchange, schema: Schema): void {
  for (const [name, value] of query)
    if (value.includes('\uFFFD')) throw badRequest(`Invalid query string parameters: ${name} is not UTF-8`);
  const fault = schemaFault(Object.fromEntries(query), schema);
  if (fault !== undefined) throw badRequest(`Invalid query string parameters: ${fault}`);
}

/** The last value of a query parameter. */
export function queryValue({ request: { query } }: Exchange, name: string): string | undefined {
  return query.getAll(name).at(-1);
}

/** An answer as it goes out, for a request of this version. */
export function answerOf(
  reply: Reply,
  { version, nowMs, origin }: { readonly version: number; readonly nowMs: number; readonly origin: string },
): PlacementAnswer {
  const headers: Record<string, string> = {};
  if (reply.location !== undefined) headers['location'] = origin + reply.location;
  if (reply.modifiedMs !== undefined) {
    if (reply.modifiedMs !== 'unknown')
      headers['last-modified'] = new Date(reply.modifiedMs === 'now' ? nowMs : reply.modifiedMs).toUTCString();
    headers['cache-control'] = 'no-cache';
  }
  if (reply.json !== undefined) headers['content-type'] = 'application/json';
  return {
    status: reply.status,
    headers: { ...headers, ...versionHeaders(version) },
    body: reply.json === undefined ? '' : JSON.stringify(reply.json),
  };
}

function versionHeaders(version: number): Record<string, string> {
  return { 'openstack-api-version': `placement 1.${version}`, vary: 'openstack-api-version' };
}

interface FaultContext {
  readonly request: Pick<PlacementRequest, 'method' | 'headers' | 'requestId' | 'as'>;
  /** Undefined: it could not be read. */
  readonly version: number | undefined;
}

/** A refusal as it goes out. */
export function answerOfFault(error: unknown, { request, version }: FaultContext): PlacementAnswer {
  const { status, detail, headers } = described(error);
  const code = error instanceof PlacementFault ? error.placementCode : placementCodes.undefined;
  const entry = {
    status,
    title: titles[status] ?? STATUS_CODES[status] ?? 'Error',
    detail: `${explanations[status]?.(request) ?? ''}${detail.replace(/\n/g, ' ')}`,
    ...(version !== undefined && version >= since.errorCodes ? { code } : {}),
    request_id: request.requestId,
    ...(request.as === undefined ? {} : { trace_id: requestTraceId(request.as) }),
    ...(status === 406 && version === undefined ? { max_version: '1.39', min_version: '1.0' } : {}),
  };
  const common = { ...headers, ...(version === undefined ? {} : versionHeaders(version)) };
  return { status, ...writtenAs(refusalFormOf(request.headers['accept']), { status, entry, common }) };
}

interface Refused {
  readonly status: number;
  readonly entry: { readonly title: string; readonly detail: string };
  readonly common: Readonly<Record<string, string>>;
}

function writtenAs(form: RefusalForm, { status, entry, common }: Refused): Pick<PlacementAnswer, 'headers' | 'body'> {
  const as = (type: string) => ({ 'content-type': type, ...common });
  const heading = `${status} ${entry.title}`;
  switch (form) {
    case 'json':
      return { headers: as('application/json'), body: JSON.stringify({ errors: [entry] }) };
    case 'html':
      return {
        headers: as('text/html; charset=UTF-8'),
        body: `<html>\n<head><title>${heading}</title></head>\n<body><h1>${heading}</h1>\n<p>${paragraphs(entry.detail)}</p></body>\n</html>\n`,
      };
    default:
      return { headers: as('text/plain; charset=UTF-8'), body: `${heading}\n\n${entry.detail}` };
  }
}

function paragraphs(text: string): string {
  return text.replace(/[&<>"']/g, (each) => `&#${each.charCodeAt(0)};`).replace(/\n\n\s*/, '<br /><br />\n');
}

function described(error: unknown): { status: number; detail: string; headers: Readonly<Record<string, string>> } {
  if (error instanceof HttpRefusal) return { status: error.status, detail: error.message, headers: error.headers };
  if (error instanceof ApiError) return { status: error.status, detail: error.message, headers: {} };
  return { status: 500, detail: 'Berth failed on this request; its log has the details', headers: {} };
}

/** What the original puts before the detail of every refusal with this status. */
const explanations: Readonly<Record<number, (request: Pick<PlacementRequest, 'method' | 'headers'>) => string>> = {
  400: () => 'The server could not comply with the request since it is either malformed or otherwise incorrect.\n\n ',
  403: () => 'Access was denied to this resource.\n\n ',
  404: () => 'The resource could not be found.\n\n ',
  405: ({ method }) => `The method ${method} is not allowed for this resource. \n\n `,
  406: ({ headers }) =>
    `The resource could not be generated that was acceptable to your browser (content of type ${headers['accept'] ?? ''}. \n\n `,
  409: () => 'There was a conflict when trying to complete your request.\n\n ',
  415: ({ headers }) =>
    `The request media type ${headers['content-type'] ?? 'None'} is not supported by this server. \n\n `,
};

const titles: Readonly<Record<number, string>> = { 503: 'Service Unavailable' };
