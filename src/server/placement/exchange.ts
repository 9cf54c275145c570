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
import { type Schema, schemaFault } from './wire/json-schema.ts';

/** A request as it came. */
export interface PlacementRequest {
  readonly method: string;
  /** Below the mount point, without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: string;
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

/** The body, which is as `schema` says. */
export function jsonBody<T>({ request }: Exchange, schema: Schema): T {
  let data: unknown;
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
  const form = faultForm(request.headers['accept']);
  const body = form === 'application/json' ? JSON.stringify({ errors: [entry] }) : text(entry, form);
  return { status, headers: { 'content-type': form, ...common }, body };
}

/** For browsers, and for clients that take neither this nor JSON. */
function text(
  { status, title, detail }: { readonly status: number; readonly title: string; readonly detail: string },
  form: FaultForm,
): string {
  if (form !== html) return `${status} ${title}\n\n${detail}`;
  const shown = escaped(detail).replace(/\n\n\s*/, '<br /><br />\n');
  const name = `${status} ${title}`;
  return `<html>\n <head>\n  <title>${name}</title>\n </head>\n <body>\n  <h1>${name}</h1>\n  ${shown}\n </body>\n</html>\n`;
}

function escaped(said: string): string {
  return said.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
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

export function acceptsJson(accept: string | undefined): boolean {
  return accept === undefined || accept.trim() === '' || qualityOf(accept, 'application/json') > 0;
}

const html = 'text/html; charset=UTF-8';
type FaultForm = 'application/json' | typeof html | 'text/plain; charset=UTF-8';

/** In which form a refusal goes out. Of two that are as welcome HTML wins, as in the original; without a wish it is JSON. */
function faultForm(accept: string | undefined): FaultForm {
  if (accept === undefined || accept.trim() === '' || accept.trim() === '*/*') return 'application/json';
  const [json, page] = [qualityOf(accept, 'application/json'), qualityOf(accept, 'text/html')];
  if (page > 0 && page >= json) return html;
  return json > 0 ? 'application/json' : 'text/plain; charset=UTF-8';
}

/** How welcome a media type is, from 0 to 1: what the most exact range says of it. */
function qualityOf(accept: string, type: string): number {
  const ranges = [type, `${type.split('/')[0]}/*`, '*/*'];
  const found = new Map<string, number>();
  for (const each of accept.split(',')) {
    const [range = '', ...options] = each.split(';').map((part) => part.trim().toLowerCase());
    const quality = Number(options.find((option) => option.startsWith('q='))?.slice(2) ?? 1);
    found.set(range, Math.max(found.get(range) ?? 0, Number.isFinite(quality) ? quality : 0));
  }
  const exact = ranges.find((range) => found.has(range));
  return exact === undefined ? 0 : (found.get(exact) ?? 0);
}
