// Caller: who makes a request, and over which protocol. Handlers check rights with it, and the audit log records it.

import type { Principal } from '../../core/access/principal.ts';
import type { Pipelined } from '../commit-turns.ts';

/** Protocols over which requests come. */
export type Face = 'http' | 'mcp' | 'amqp' | 'forge' | 'placement';

export interface Caller {
  readonly principal: Principal;
  /** Of this request, for logs; unique. */
  readonly requestId: string;
  /** Address of the sender; empty inside the process. */
  readonly address: string;
  readonly face: Face;
  /** The trace that the request is part of, if it says so: a valid `traceparent`. */
  readonly traceParent?: string | undefined;
  /** The connection, if the request was pipelined behind unanswered ones. */
  readonly from?: Pipelined | undefined;
  /** The audit log's notes on this request (audit/trail.ts). */
  trail?: object | undefined;
}
