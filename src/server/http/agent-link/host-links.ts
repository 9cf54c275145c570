// What the control plane needs of the lines that agents have dialled: a way to ask a host for something.

import type { Duplex } from 'node:stream';

export interface HostAnswer {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: AsyncIterable<Uint8Array>;
}

export interface HostLinks {
  /** A GET on the agent of `host`. Throws `HostUnreachable`, or what the agent answered, as `ApiError`. */
  get(host: string, path: string, signal: AbortSignal): Promise<HostAnswer>;
  /** A POST whose body, both ways, goes on for as long as either end wants. Throws as `get`, and `TooManyRequests`. */
  open(host: string, path: string, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<Duplex>;
}
