// Adds requests to the trace in TRACEPARENT, which CI systems and `otel-cli` set for the programs that they start.

import { traceParentIn } from '../base/tracing/trace-parent.ts';
import type { Cli } from './cli.ts';

/** The same, with a header `traceparent` when the environment has a valid one. */
export function traced(send: Cli['fetch'], environment: Cli['environment']): Cli['fetch'] {
  const traceparent = traceParentIn(environment['TRACEPARENT']);
  if (traceparent === undefined) return send;
  return (url, init) => send(url, { ...init, headers: { ...init.headers, traceparent } });
}
