// What a decision may know besides the snapshot: the time, chance, fresh ids and the fleet's time limits. Nothing else.

import type { Prng } from '../../base/prng.ts';

/** Time limits that operators set; milliseconds. */
export interface Policy {
  /** A host whose lease was not renewed for so long is lost. */
  readonly offlineAfterMs: number;
  /** How often agents send a heartbeat. */
  readonly heartbeatMs: number;
  /** A failed instance with restart policy OnFailure waits this long. */
  readonly restartDelayMs: number;
  /** How long events and idempotency records are kept. */
  readonly eventsKeptMs: number;
  readonly idempotencyKeptMs: number;
}

export const defaultPolicy: Policy = {
  offlineAfterMs: 60_000, // three minutes in Orchard, 60 s in Nova; six missed heartbeats here
  heartbeatMs: 10_000,
  restartDelayMs: 15_000, // SYSTEMS S4.6
  eventsKeptMs: 24 * 3_600_000,
  idempotencyKeptMs: 24 * 3_600_000, // longer than any queue redelivers
};

export interface Context {
  readonly nowMs: number;
  /** For comparing with `Snapshot.leaseSeenAtMs`; never falls. */
  readonly monotonicMs: number;
  readonly prng: Prng;
  readonly policy: Policy;
  newId(prefix: string): string;
}
