// The trace of a request: the caller's, or one derived from the id of the request, so that repeated lookups agree.

import { hash } from 'node:crypto';
import { traceIdIn } from '../../base/tracing/trace-parent.ts';

/** 32 hex digits. `traceParent`: a valid one. */
export function requestTraceId({
  traceParent,
  requestId,
}: {
  readonly traceParent?: string | undefined;
  readonly requestId: string;
}): string {
  return traceParent === undefined ? hash('sha256', requestId, 'hex').slice(0, 32) : traceIdIn(traceParent);
}
