// Sends requests of the API over an injected fetch, and turns answers that are not 2xx into `ApiError`. It remembers the newest
// revision that any server has returned, so that no later answer is older. No schema is imported at run time.

import { isRecord } from '../../base/is-record.ts';
import { atLeastHeader } from '../at-least.ts';
import { ApiError, type ErrorCode, isErrorCode } from '../errors.ts';
import { Servers } from './servers.ts';
import { throughServers } from './through-servers.ts';

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

export interface Call {
  readonly method?: string;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Sent unchanged, instead of a `body`. */
  readonly bytes?: Uint8Array<ArrayBuffer>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  /** Whether it may be sent to another server when it is unknown whether the first one acted on it; default: depends on its method. */
  readonly repeatable?: boolean;
}

export class Requests {
  readonly #options: ClientOptions;
  readonly #servers: Servers;
  /** The newest revision that any server has returned: the next server must not answer with an older one. */
  #seen = 0;

  constructor(options: ClientOptions) {
    this.#options = options;
    this.#servers = typeof options.url === 'string' ? new Servers({ urls: [options.url] }) : options.url;
  }

  /** One call; throws `ApiError` for every answer that is not 2xx, and `Unavailable` when there is none. */
  async send(path: string, call: Call = {}): Promise<FetchResponse> {
    const target = path + queryString(call.query);
    const sent = { target, init: this.#initOf(call), repeatable: call.repeatable ?? mayRepeat(call) };
    try {
      return await throughServers({ servers: this.#servers, send: this.#options.fetch, errorOf }, sent);
    } catch (error) {
      if (error instanceof ApiError && error.code === 'Compacted') this.#seen = 0; // a restore may have reset the revisions
      throw error;
    }
  }

  /** The answer is not checked against a schema: client and server use the same registry. */
  async json<T>(path: string, call?: Call): Promise<T> {
    const value = parseJson(await (await this.send(path, call)).text());
    this.see(value);
    return value as T; // the codec
  }

  /** Notes the revision of an answer. */
  see(value: unknown): void {
    if (!isRecord(value)) return;
    const { revision, metadata } = value;
    const returned = typeof revision === 'number' ? revision : isRecord(metadata) ? metadata['revision'] : undefined;
    if (typeof returned === 'number' && returned > this.#seen) this.#seen = returned;
  }

  #initOf(call: Call): FetchInit {
    const { token, userAgent } = this.#options;
    const headers: Record<string, string> = { accept: 'application/json', ...call.headers };
    if (token !== undefined) headers['authorization'] = `Bearer ${token}`;
    if (userAgent !== undefined) headers['user-agent'] = userAgent;
    if (this.#seen > 0) headers[atLeastHeader] = String(this.#seen);
    if (call.body !== undefined) headers['content-type'] = 'application/json';
    if (call.bytes !== undefined) headers['content-type'] = 'application/octet-stream';
    return {
      method: call.method ?? 'GET',
      headers,
      ...(call.body === undefined ? {} : { body: JSON.stringify(call.body) }),
      ...(call.bytes === undefined ? {} : { body: call.bytes }),
      ...(call.signal === undefined ? {} : { signal: call.signal }),
    };
  }
}

function queryString(query: Call['query']): string {
  const pairs = Object.entries(query ?? {}).flatMap(([name, value]) =>
    value === undefined ? [] : `${encodeURIComponent(name)}=${encodeURIComponent(String(value))}`,
  );
  return pairs.length ? `?${pairs.join('&')}` : '';
}

/** A stream may end with an error instead of its last line, because its status was sent before. */
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

/** The error that an answer other than 2xx reports. */
export function errorOf(status: number, text: string): ApiError {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    body = undefined; // not from Berth: a proxy's page, for example
  }
  const ofPlacement = placementError(status, body);
  if (ofPlacement) return ofPlacement;
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
  // The server's log has the details under this id.
  const trace = code === 'Internal' && typeof error['traceId'] === 'string' ? ` (trace ${error['traceId']})` : '';
  return new ApiError(code, `${message}${trace}`, {
    ...(ours ? {} : { cause: new Error(`${status}, and not by a server of Berth`) }),
    ...(typeof error['field'] === 'string' ? { field: error['field'] } : {}),
    details: error['details'],
  });
}

const codeByStatus: Readonly<Record<number, ErrorCode>> = {
  400: 'InvalidRequest',
  401: 'Unauthenticated',
  403: 'Forbidden',
  404: 'NotFound',
  409: 'Conflict',
};

/** The routes of the Placement API answer in OpenStack's format. */
function placementError(status: number, body: unknown): ApiError | undefined {
  const code = codeByStatus[status];
  const errors = isRecord(body) && Array.isArray(body['errors']) ? body['errors'] : [];
  const first: unknown = errors[0];
  if (code === undefined || !isRecord(first) || typeof first['detail'] !== 'string') return undefined;
  return new ApiError(code, first['detail'].replace(/\s+/g, ' ').trim());
}

/** Whether sending it twice has the same effect as once. With a condition on a revision it has not: the second attempt would refuse what the first one did. */
function mayRepeat({ method = 'GET', headers, query, body, bytes }: Call): boolean {
  if (method === 'GET' || headers?.['idempotency-key'] !== undefined) return true;
  const metadata = isRecord(body) && isRecord(body['metadata']) ? body['metadata'] : {};
  const conditional = query?.['ifRevision'] !== undefined || metadata['revision'] !== undefined;
  return (method === 'PUT' || method === 'DELETE') && bytes === undefined && !conditional;
}

/** The lines of a streamed answer. */
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
