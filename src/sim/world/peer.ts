// Who is at the two ends of the false network, and what passes between them.

import type { Principal } from '../../core/access/principal.ts';
import type { ProcessClock } from './process-clock.ts';

/** One life of a client. */
export interface Peer {
  readonly name: string;
  readonly clock: ProcessClock;
  readonly principal: Principal;
  /** The host it runs on, whose partitions it shares; undefined: beside the control planes. */
  readonly host?: string;
  /** How long it waits for an answer; default: longer than any call within Berth waits. */
  readonly answerTimeoutMs?: number;
}

/** Where a control plane listens. It stays while processes behind it come and go. */
export interface Endpoint {
  readonly name: string;
}

export type Partition = 'both' | 'to-server' | 'from-server';

export interface SeenRequest {
  readonly peer: string;
  readonly method: string;
  readonly path: string;
  /** JSON; undefined when there is none. */
  readonly bodyText: string | undefined;
  /** A body that is not text. */
  readonly bodyBytes?: Uint8Array | undefined;
}
