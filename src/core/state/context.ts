// What a decision may know besides the snapshot: the time, chance, fresh ids and the fleet's limits. Nothing else.

import type { Prng } from '../../base/prng.ts';

/** Limits that operators set. */
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
  /** How many of them are kept at most, whatever their age: the oldest go first. */
  readonly eventsMax: number;
  readonly idempotencyMax: number;
  /** How far back the store's changes can be watched: so long, and at most so many revisions. */
  readonly historyKeptMs: number;
  readonly historyRevisionsMax: number;
  /** How often each CPU is given out where neither host nor pool says so. */
  readonly cpuAllocationRatio: number;
  /** A waiting instance gains a point of priority for each of these that it is the head of its line (queue/order.ts). */
  readonly agingMs: number;
  /** So long the first of its line, an instance that fits nowhere gets room kept for it, for `nominationMs`. */
  readonly starvationMs: number;
  readonly nominationMs: number;
  /** How many instances may be placed and not ended at once; missing: any number. */
  readonly maxConcurrency?: number;
  /** Only those with this label count for it: `key=value`. Missing: all. */
  readonly concurrencyLabel?: string;
  /** The same for single images, by a name or alias, or by what the label `runs-on` says. */
  readonly capacityMap?: Readonly<Record<string, number>>;
}

export const defaultPolicy: Policy = {
  offlineAfterMs: 60_000, // three minutes in Orchard, 60 s in Nova; six missed heartbeats here
  heartbeatMs: 10_000,
  restartDelayMs: 15_000,
  eventsKeptMs: 24 * 3_600_000,
  idempotencyKeptMs: 24 * 3_600_000, // longer than any queue redelivers
  eventsMax: 50_000, // some 25 MiB of memory, and twice that for V8 to work with
  idempotencyMax: 1_000_000, // a day at twelve creates a second
  historyKeptMs: 3_600_000,
  historyRevisionsMax: 100_000,
  cpuAllocationRatio: 4, // as Nova's since 2023; most CPUs of most guests are idle
  starvationMs: 600_000,
  nominationMs: 600_000, // as long as it has waited: half of the time others get what comes free
  agingMs: 600_000, // low priority moves once in ten minutes for each point, however much comes above it
};

export interface Context {
  readonly nowMs: number;
  /** For comparing with `Snapshot.leaseSeenAtMs`; never falls. */
  readonly monotonicMs: number;
  readonly prng: Prng;
  readonly policy: Policy;
  newId(prefix: string): string;
}
