// Routes about the process itself: alive, ready, version, and the API's own description.

import { ApiError } from '../../api/errors.ts';
import { openApiDocument } from '../../api/openapi.ts';
import type { Route } from './route.ts';

export function processRoutes({ ready, version }: { ready: () => boolean; version: string }): Route[] {
  return [
    { method: 'GET', path: '/healthz', verb: 'open', handle: () => ({ status: 200, json: { ok: true } }) },
    {
      method: 'GET',
      path: '/readyz',
      verb: 'open',
      handle() {
        if (!ready()) throw new ApiError('Unavailable', 'the store is not followed now');
        return { status: 200, json: { ok: true } };
      },
    },
    { method: 'GET', path: '/v1/version', verb: 'open', handle: () => ({ status: 200, json: { version } }) },
    { method: 'GET', path: '/openapi.json', verb: 'open', handle: () => ({ status: 200, json: openApiDocument() }) },
  ];
}
