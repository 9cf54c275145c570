// Routes about the process itself: alive, ready, version, and the API's own description.

import { ApiError } from '../../../../api/errors.ts';
import { openApiDocument } from '../../../../api/openapi.ts';
import { processRoutes as routes } from '../../../../api/routes/process.ts';
import { rightsOf } from '../../../../core/access/rights-of.ts';
import type { Snapshot } from '../../../../core/state/snapshot.ts';
import type { Metrics } from '../../../metrics/metrics.ts';
import type { Outside } from '../../../outside.ts';
import { bind } from '../bind.ts';
import type { Caller } from '../../caller.ts';
import { type Route, Written } from '../../route.ts';

interface ProcessParts {
  /** Undefined: it is. */
  readonly whyNotReady: () => string | undefined;
  readonly version: string;
  readonly metrics: Metrics;
  readonly outside: Outside;
  readonly snapshot: Snapshot;
}

export function processRoutes({ whyNotReady, version, metrics, outside, snapshot }: ProcessParts): Route[] {
  /** They name other systems, and tell what fails there. */
  const partsFor = ({ principal }: Caller): ReturnType<Outside['reports']> =>
    rightsOf(principal, snapshot).everywhere('read', 'metrics') ? outside.reports() : [];
  return [
    bind(routes.healthz, () => ({ status: 200, json: { ok: true } })),
    bind(routes.readyz, ({ query }, { caller }) => {
      const why = whyNotReady();
      if (why !== undefined) throw new ApiError('Unavailable', why);
      return { status: 200, json: { ok: true, ...(query.verbose ? { parts: partsFor(caller) } : {}) } };
    }),
    bind(routes.metrics, (_, { caller }) => ({
      status: 200,
      bytes: textOf(metrics, rightsOf(caller.principal, snapshot).everywhere('read', 'project')),
      headers: { 'content-type': metrics.contentType },
    })),
    bind(routes.version, () => ({ status: 200, json: { version } })),
    bind(routes.openApi, () => new Written(200, openApiText(), openApiDocument)),
  ];
}

let madeOpenApiText: Uint8Array | undefined;

/** Made once, when it is first asked for: it takes some 0.2 s, and everybody may ask. */
function openApiText(): Uint8Array {
  return (madeOpenApiText ??= Buffer.from(JSON.stringify(openApiDocument())));
}

async function* textOf(metrics: Metrics, named: boolean): AsyncGenerator<Uint8Array, void> {
  yield Buffer.from(await metrics.text({ named }));
}
