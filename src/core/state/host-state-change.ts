// The state of a host in its record, which changes with what it is derived from.

import { hostStateName } from '../../api/resources/host-state.ts';
import type { Host } from '../../api/resources/host.ts';

/** The same host where its state is as recorded. */
export function withState(host: Host, nowMs: number): Host {
  const name = hostStateName(host);
  const { state } = host.status;
  return state?.name === name ? host : { ...host, status: { ...host.status, state: { name, sinceMs: nowMs } } };
}
