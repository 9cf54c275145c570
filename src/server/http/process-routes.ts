// Routes about the process itself: alive, ready, version, and the API's own description.

import { ApiError } from '../../api/errors.ts';
import { openApiDocument } from '../../api/openapi.ts';
import type { Metrics } from '../metrics.ts';
import type { Route } from './route.ts';

interface ProcessParts {
  /** Undefined: it is. */
  readonly whyNotReady: () => string | undefined;
  readonly version: string;
  readonly metrics: Metrics;
}

export function processRoutes({ whyNotReady, version, metrics }: ProcessParts): Route[] {
  return [
    { method: 'GET', path: '/healthz', verb: 'open', handle: () => ({ status: 200, json: { ok: true } }) },
    {
      method: 'GET',
      path: '/readyz',
      verb: 'open',
      handle() {
        const why = whyNotReady();
        if (why !== undefined) throw new ApiError('Unavailable', why);
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
