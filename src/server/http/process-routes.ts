// Routes about the process itself: alive, ready, version, and the API's own description.

import { ApiError } from '../../api/errors.ts';
import { openApiDocument } from '../../api/openapi.ts';
import type { Metrics } from '../metrics.ts';
import type { Route } from './route.ts';

interface ProcessParts {
  readonly ready: () => boolean;
  readonly version: string;
  readonly metrics: Metrics;
}

export function processRoutes({ ready, version, metrics }: ProcessParts): Route[] {
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
    {
      method: 'GET',
      path: '/metrics',
      verb: 'open',
      handle: () => ({
        status: 200,
        bytes: textOf(metrics),
        headers: { 'content-type': metrics.contentType },
      }),
    },
    { method: 'GET', path: '/v1/version', verb: 'open', handle: () => ({ status: 200, json: { version } }) },
    { method: 'GET', path: '/openapi.json', verb: 'open', handle: () => ({ status: 200, json: openApiDocument() }) },
  ];
}

async function* textOf(metrics: Metrics): AsyncGenerator<Uint8Array, void> {
  yield Buffer.from(await metrics.text());
}
