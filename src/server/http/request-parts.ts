// Small facts of a request that several parts of the HTTP server need.

import type { IncomingMessage } from 'node:http';

/** `route`: the path of the registry, with the names of its parameters; `none`: there is no such route. */
export interface AnsweredRequest {
  readonly method: string;
  readonly route: string;
  readonly status: number;
  readonly tookMs: number;
}

/** The path without the query. */
export function pathOf(url: string): string {
  return url.split('?', 1)[0] ?? '';
}

export function singleHeaders(request: IncomingMessage): Readonly<Record<string, string | undefined>> {
  const headers: Record<string, string | undefined> = {};
  for (const [name, value] of Object.entries(request.headers))
    headers[name] = Array.isArray(value) ? value.join(', ') : value;
  return headers;
}
