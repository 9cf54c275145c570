// Caller: who makes a request, and over which way in. The handlers ask with it, and the audit log writes it down.

import type { Principal } from '../../core/access/principal.ts';
import type { Pipelined } from '../commit-turns.ts';

/** The ways in. */
export type Face = 'http' | 'mcp' | 'amqp' | 'forge' | 'placement';

export interface Caller {
  readonly principal: Principal;
  /** Of this request, for logs; unique. */
  readonly requestId: string;
  /** Where it came from; empty inside the process. */
  readonly address: string;
  readonly face: Face;
  /** The trace that the request is part of, if it says so: a valid `traceparent`. */
  readonly traceParent?: string | undefined;
  /** The connection, if the request came before the answers to those before it were sent. */
  readonly from?: Pipelined | undefined;
  /** Where the audit log keeps what it notes of this request (audit/trail.ts). */
  trail?: object | undefined;
}
