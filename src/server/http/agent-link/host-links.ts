// The interface of agent links: sends requests to the agent of a host.

import type { Duplex } from 'node:stream';

export interface HostAnswer {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: AsyncIterable<Uint8Array>;
}

export interface HostLinks {
  /** A GET on the agent of `host`. Throws `HostUnreachable`, or the agent's error as `ApiError`. */
  get(host: string, path: string, signal: AbortSignal): Promise<HostAnswer>;
  /** A POST with streams in both directions, until either side ends. Throws as `get`, and `TooManyRequests`. */
  open(host: string, path: string, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<Duplex>;
}
