// A client of the Placement API for tests.

import { systemFetch } from '../../base/system.ts';

export interface PlacementReply {
  readonly status: number;
  readonly headers: Headers;
  /** Parsed JSON; undefined: the answer has no body. */
  readonly json: unknown;
}

export type Ask = (
  method: string,
  path: string,
  options?: { readonly version?: number; readonly body?: unknown; readonly headers?: Readonly<Record<string, string>> },
) => Promise<PlacementReply>;

/** Asks as the administrator, at version 1.39 unless another is given. */
export function placementClient(url: string): Ask {
  return async (method, path, { version = 39, body, headers = {} } = {}) => {
    const answer = await systemFetch(`${url}/placement${path}`, {
      method,
      headers: {
        'x-auth-token': 'operator',
        accept: 'application/json',
        'openstack-api-version': `placement 1.${version}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    return { status: answer.status, headers: answer.headers, json: text === '' ? undefined : JSON.parse(text) };
  };
}
