// The typed client of the API for people's programs, over an injected fetch. It must not import a schema at run time: the command
// line starts in a third of the time without them.

import { isRecord } from '../base/is-record.ts';
import { atLeastHeader } from './at-least.ts';
import { ApiError, isErrorCode } from './errors.ts';
import type { AuditReport, AuditRequest } from './audit.ts';
import type { Candidates } from './candidates.ts';
import type { Capacity } from './capacity.ts';
import type { QueueList } from './queue.ts';
import type { Explanation } from './explanation.ts';
import type { HostToken } from './host-token.ts';
import type { InstanceBatchAnswer } from './instance-batch.ts';
import type { Kind, ResourceByKind } from './resources/index.ts';
import type { Labels } from './resources/metadata.ts';
import type { AskSpec } from './resources/task.ts';
import { Servers } from './servers.ts';
import { throughServers } from './through-servers.ts';
import type { HostProviders, ProjectUsage, UsagePage } from './usage.ts';

/** The part of `fetch` that is used, so that a false network can stand in for it. */
export type FetchLike = (url: string, init: FetchInit) => Promise<FetchResponse>;

export interface FetchInit {
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly body?: string | Uint8Array<ArrayBuffer>;
  readonly signal?: AbortSignal;
}

export interface FetchResponse {
  readonly status: number;
  readonly headers: { get(name: string): string | null };
  readonly body: AsyncIterable<Uint8Array> | null;
  text(): Promise<string>;
}

export interface ClientOptions {
  readonly fetch: FetchLike;
  /** `http://127.0.0.1:7070`, without a trailing slash; or several servers of one fleet. */
  readonly url: string | Servers;
  readonly token?: string;
  readonly userAgent?: string;
}

export interface ListQuery {
  readonly project?: string;
  /** `tier=web,zone!=a,!old`: see docs/api.md. */
  readonly selector?: string;
  /** For events: only those of one resource. */
  readonly subject?: string;
  readonly limit?: number;
  readonly continue?: string;
}

export interface ListPage<T> {
  readonly items: readonly T[];
  /** Of the state that was read; a watch from here misses nothing. */
  readonly revision: number;
  /** Of the store: give it to the watch that goes on from `revision`. */
  readonly epoch?: string;
  /** Pass it as `continue` for the next page; absent on the last. */
  readonly continue?: string;
}

/** `put`: made or changed; `delete`: gone; `bookmark`: nothing new up to `revision`. */
export type WatchedChange<T> =
  | { readonly type: 'put'; readonly revision: number; readonly resource: T }
  | {
      readonly type: 'delete';
      readonly revision: number;
      readonly resource: { readonly metadata: { readonly name: string; readonly project: string } };
    }
  | { readonly type: 'bookmark'; readonly revision: number };

export interface NewResource<Spec> {
  readonly metadata?: { readonly name?: string; readonly project?: string; readonly labels?: Labels };
  readonly spec: Spec;
}

export interface ChangedResource<Spec> extends NewResource<Spec> {
  readonly metadata?: NewResource<Spec>['metadata'] & { readonly revision?: number };
}

export type PlannedInstance = ResourceByKind['instance'] & { readonly explanation: Explanation };

/** What needs room somewhere. */
export interface Asking {
  readonly project?: string;
  readonly labels?: Labels;
  readonly spec: Partial<AskSpec>;
}

interface Call {
  readonly method?: string;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Sent as they are, instead of a `body`. */
  readonly bytes?: Uint8Array<ArrayBuffer>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  /** Whether it may be sent to another server when nobody knows whether the first took it; default: by its method. */
  readonly repeatable?: boolean;
}

export type UserClient = ReturnType<typeof createUserClient>;

export function createUserClient(options: ClientOptions) {
  const servers = typeof options.url === 'string' ? new Servers({ urls: [options.url] }) : options.url;
  /** The newest that any control plane has told: the next to be asked must not know less. */
  let seen = 0;
  const see = (value: unknown): void => {
    if (!isRecord(value)) return;
    const { revision, metadata } = value;
    const told = typeof revision === 'number' ? revision : isRecord(metadata) ? metadata['revision'] : undefined;
    if (typeof told === 'number' && told > seen) seen = told;
  };

  /** One call; throws `ApiError` for every answer that is not 2xx, and `Unavailable` when there is none. */
  async function request(path: string, call: Call = {}): Promise<FetchResponse> {
    const headers: Record<string, string> = { accept: 'application/json', ...call.headers };
    if (options.token !== undefined) headers['authorization'] = `Bearer ${options.token}`;
    if (options.userAgent !== undefined) headers['user-agent'] = options.userAgent;
    if (seen > 0) headers[atLeastHeader] = String(seen);
    if (call.body !== undefined) headers['content-type'] = 'application/json';
    if (call.bytes !== undefined) headers['content-type'] = 'application/octet-stream';
    const init: FetchInit = {
      method: call.method ?? 'GET',
      headers,
      ...(call.body === undefined ? {} : { body: JSON.stringify(call.body) }),
      ...(call.bytes === undefined ? {} : { body: call.bytes }),
      ...(call.signal === undefined ? {} : { signal: call.signal }),
    };
    const sent = { target: path + queryString(call.query), init, repeatable: call.repeatable ?? mayRepeat(call) };
    try {
      return await throughServers({ servers, send: options.fetch, errorOf }, sent);
    } catch (error) {
      if (error instanceof ApiError && error.code === 'Compacted') seen = 0; // a restore may have begun anew
      throw error;
    }
  }

  /** The answer is trusted to be what the server's schema says: both come from one registry. */
  async function json<T>(path: string, call?: Call): Promise<T> {
    const value = parseJson(await (await request(path, call)).text());
    see(value);
    return value as T; // the codec
  }

  return {
    request,
    json,

    list: <K extends Kind>(kind: K, query: ListQuery = {}): Promise<ListPage<ResourceByKind[K]>> =>
      json(pathOf(kind), { query: { ...query } }),

    /** `name` may be an id. */
    get: <K extends Kind>(kind: K, name: string, query: { project?: string } = {}): Promise<ResourceByKind[K]> =>
      json(pathOf(kind, name), { query }),

    create: <K extends Kind>(
      kind: K,
      body: NewResource<Partial<ResourceByKind[K]['spec']>>,
      extra: { idempotencyKey?: string; signal?: AbortSignal } = {},
    ): Promise<ResourceByKind[K]> =>
      json(pathOf(kind), {
        method: 'POST',
        body,
        ...(extra.signal ? { signal: extra.signal } : {}),
        ...(extra.idempotencyKey === undefined ? {} : { headers: { 'idempotency-key': extra.idempotencyKey } }),
      }),

    /** At most 1,000 at once, in order: each is made or refused on its own. With a key, item i has the key `<key>/<i>`. */
    createInstances: (
      items: readonly NewResource<Partial<ResourceByKind['instance']['spec']>>[],
      extra: { idempotencyKey?: string; signal?: AbortSignal } = {},
    ): Promise<InstanceBatchAnswer> =>
      json(`${pathOf('instance')}/batch`, {
        method: 'POST',
        body: { items },
        ...(extra.signal ? { signal: extra.signal } : {}),
        ...(extra.idempotencyKey === undefined ? {} : { headers: { 'idempotency-key': extra.idempotencyKey } }),
      }),

    replace: <K extends Kind>(
      kind: K,
      name: string,
      body: ChangedResource<Partial<ResourceByKind[K]['spec']>>,
    ): Promise<ResourceByKind[K]> => {
      const { project } = body.metadata ?? {};
      return json(pathOf(kind, name), {
        method: 'PUT',
        body,
        query: { project: project === '' ? undefined : project },
      });
    },

    /** The resource as it was left: an instance is `Deleting` until its host holds nothing of it. */
    delete: <K extends Kind>(
      kind: K,
      name: string,
      query: { project?: string; ifRevision?: number; force?: boolean } = {},
    ): Promise<ResourceByKind[K]> => json(pathOf(kind, name), { method: 'DELETE', query }),

    /** Changes after `revision`, endlessly. Throws `ApiError` `Compacted` when they are gone: list again. */
    async *watch<K extends Kind>(
      kind: K,
      query: ListQuery & { readonly revision: number; readonly epoch?: string },
      signal?: AbortSignal,
    ): AsyncIterable<WatchedChange<ResourceByKind[K]>> {
      const response = await request(pathOf(kind), { query: { ...query, watch: true }, ...(signal ? { signal } : {}) });
      for await (const line of linesOf(response)) {
        const change = parseLine(line);
        see(change);
        yield change as WatchedChange<ResourceByKind[K]>; // the codec
      }
    },

    /** The instance as it would be made, and where it would go, or why nowhere. Nothing is made or held. */
    plan: (
      body: NewResource<Partial<ResourceByKind['instance']['spec']>>,
      query: { limit?: number; continue?: string } = {},
    ): Promise<PlannedInstance> =>
      json(pathOf('instance'), { method: 'POST', body, query: { ...query, dryRun: true }, repeatable: true }),

    /** Hosts that would take it, the best first; `limit` at most. */
    candidates: (asking: Asking & { readonly limit?: number }): Promise<Candidates> =>
      json('/v1/candidates', { method: 'POST', body: asking, repeatable: true }),

    /** How many more fit of what is asked for, or of every size; `losses`: check whether the fleet survives the loss of this many hosts. */
    queue: (query: { project?: string; limit?: number } = {}): Promise<QueueList> => json('/v1/queue', { query }),

    capacity: (question: Partial<Asking> & { readonly losses?: number } = {}): Promise<Capacity> =>
      json('/v1/capacity', { method: 'POST', body: question, repeatable: true }),

    /** What does not fit together, and with `apply` its repair. */
    audit: (body: Partial<AuditRequest> = {}): Promise<AuditReport> => json('/v1/audit', { method: 'POST', body }),

    /** What the agent of a host needs; for operators. */
    hostToken: (host: string): Promise<HostToken> =>
      json(`/v1/hosts/${encodeURIComponent(host)}/token`, { method: 'POST' }),

    /** What hosts have and hold, by page. */
    usage: (query: { host?: string; limit?: number; continue?: string } = {}): Promise<UsagePage> =>
      json('/v1/usage', { query }),

    /** What the quota of a project counts now. */
    projectUsage: (project: string): Promise<ProjectUsage> => json(`${pathOf('project', project)}/usage`),

    /** Show the providers of a host, and their allocations. */
    providers: (host: string): Promise<HostProviders> => json(`${pathOf('host', host)}/providers`),

    /** `limit`: how many hosts are told of one by one; default 20. */
    explain: (
      name: string,
      query: { project?: string; limit?: number; continue?: string } = {},
    ): Promise<Explanation> => json(`${pathOf('instance', name)}/explain`, { query }),

    /** The console from byte `offset` on; with `follow` it goes on until the guest is gone or `signal` aborts. */
    async *log(
      name: string,
      query: { project?: string; offset?: number; follow?: boolean } = {},
      signal?: AbortSignal,
    ): AsyncIterable<Uint8Array> {
      const response = await request(`${pathOf('instance', name)}/log`, { query, ...(signal ? { signal } : {}) });
      yield* response.body ?? [];
    },
  };
}

/** The plural of every kind is its name and an "s"; user-client.test.ts holds this against the registry. */
export function pathOf(kind: Kind, name?: string): string {
  return `/v1/${kind}s${name === undefined ? '' : `/${encodeURIComponent(name)}`}`;
}

function queryString(query: Call['query']): string {
  const pairs = Object.entries(query ?? {}).flatMap(([name, value]) =>
    value === undefined ? [] : `${encodeURIComponent(name)}=${encodeURIComponent(String(value))}`,
  );
  return pairs.length ? `?${pairs.join('&')}` : '';
}

/** A stream may end with an error in the place of its last line, when its status had been sent already. */
export function parseLine(line: string): unknown {
  const value = parseJson(line);
  if (isRecord(value) && isRecord(value['error'])) throw errorOf(500, line);
  return value;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new ApiError('Internal', `the server answered with something that is not JSON: ${text.slice(0, 80)}`, {
      cause,
    });
  }
}

/** What an answer that is no success says. */
export function errorOf(status: number, text: string): ApiError {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    body = undefined; // not ours: a proxy's page, say
  }
  const error = isRecord(body) && isRecord(body['error']) ? body['error'] : {};
  const code =
    typeof error['code'] === 'string' && isErrorCode(error['code'])
      ? error['code']
      : status === 404
        ? 'NotFound'
        : 'Unavailable';
  const message =
    typeof error['message'] === 'string' ? error['message'] : `the server answered ${status}: ${text.slice(0, 200)}`;
  const ours = isRecord(body) && isRecord(body['error']);
  return new ApiError(code, message, {
    ...(ours ? {} : { cause: new Error(`${status}, and not by a server of Berth`) }),
    ...(typeof error['field'] === 'string' ? { field: error['field'] } : {}),
    details: error['details'],
  });
}

/** What is sent twice does the same as once; not so what must find a revision: it would refuse what it has done itself. */
function mayRepeat({ method = 'GET', headers, query, body, bytes }: Call): boolean {
  if (method === 'GET' || headers?.['idempotency-key'] !== undefined) return true;
  const metadata = isRecord(body) && isRecord(body['metadata']) ? body['metadata'] : {};
  const conditional = query?.['ifRevision'] !== undefined || metadata['revision'] !== undefined;
  return (method === 'PUT' || method === 'DELETE') && bytes === undefined && !conditional;
}

/** Newline-separated text, piece by piece. */
export async function* linesOf(response: FetchResponse): AsyncIterable<string> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const bytes of response.body ?? []) {
    rest += decoder.decode(bytes, { stream: true });
    const lines = rest.split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) if (line !== '') yield line;
  }
  if (rest !== '') yield rest;
}
