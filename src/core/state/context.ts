// What a decision may use besides the snapshot: time, randomness, fresh ids and the fleet's limits. Nothing else.

import type { Prng } from '../../base/prng.ts';

/** Limits that operators set. */
export interface Policy {
  /** A host whose lease was not renewed for this long is lost. */
  readonly offlineAfterMs: number;
  /** A host that is silent for this long is down: instances that ask for it are replaced. */
  readonly hostDownAfterMs: number;
  /** When many hosts are lost together: replacements wait this long, then those of one host begin per interval. */
  readonly massLossHoldMs: number;
  readonly massLossIntervalMs: number;
  /** The servers can fence hosts. */
  readonly fencing?: boolean;
  /** How often agents send a heartbeat. */
  readonly heartbeatMs: number;
  /** Delay before a failed instance with a restart policy restarts, the first time in a row. */
  readonly restartDelayMs: number;
  /** Restarts in a row double the delay up to this. */
  readonly restartDelayMsMax: number;
  /** Names of the provisioners of spares, besides the built-in one; absent: not known here. */
  readonly provisioners?: readonly string[];
  /** How long events and idempotency records are kept. */
  readonly eventsKeptMs: number;
  readonly idempotencyKeptMs: number;
  /** Maximum number of events, whatever their age; the oldest are deleted first. */
  readonly eventsMax: number;
  readonly idempotencyMax: number;
  /** How long jobs that have ended stay readable, and how many of all jobs are kept; the oldest are deleted first. */
  readonly jobsKeptMs: number;
  /** How long tasks that have ended are kept. */
  readonly tasksKeptMs: number;
  readonly jobsMax: number;
  /** How far back the store's changes can be watched: this long, and at most this many revisions. */
  readonly historyKeptMs: number;
  readonly historyRevisionsMax: number;
  /** The ratio where neither host nor pool sets one. */
  readonly cpuAllocationRatio: number;
  /** The head of a line (queue/order.ts) gains a point of priority for each such period. */
  readonly agingMs: number;
  /** The head of the queue that fits nowhere for this long gets a reservation, which lasts `nominationMs`. */
  readonly starvationMs: number;
  readonly nominationMs: number;
  /** How many instances may be placed and not ended at once; absent: unlimited. */
  readonly maxConcurrency?: number;
  /** Only instances with this label count: `key=value`. Absent: all. */
  readonly concurrencyLabel?: string;
  /** The same for single images, by name, alias or the label `runs-on`. */
  readonly capacityMap?: Readonly<Record<string, number>>;
  /** Where others reach this control plane, for links in what leaves it; absent: not known. */
  readonly publicUrl?: string;
}

export const defaultPolicy: Policy = {
  offlineAfterMs: 60_000, // three minutes in Orchard, 60 s in Nova; six missed heartbeats here
  hostDownAfterMs: 300_000, // five minutes, as Kubernetes waits before it evicts
  massLossHoldMs: 600_000, // time for a person to look: one broken switch is likelier than many broken hosts
  massLossIntervalMs: 60_000,
  heartbeatMs: 10_000,
  restartDelayMs: 15_000,
  restartDelayMsMax: 300_000,
  eventsKeptMs: 24 * 3_600_000,
  idempotencyKeptMs: 24 * 3_600_000, // longer than any queue redelivers a message
  eventsMax: 50_000, // some 25 MiB of data, and as much again for V8
  idempotencyMax: 1_000_000, // a day at twelve creates a second
  jobsKeptMs: 7 * 24 * 3_600_000,
  tasksKeptMs: 3_600_000,
  jobsMax: 10_000, // some 20 MiB
  historyKeptMs: 3_600_000,
  historyRevisionsMax: 100_000,
  cpuAllocationRatio: 4, // as Nova's since 2023; most CPUs of most guests are idle
  starvationMs: 600_000,
  nominationMs: 600_000, // as long as it has waited: half of the time other instances take what is freed
  agingMs: 600_000, // low priority is placed once in ten minutes per point, however much has a higher one
};

export interface Context {
  readonly nowMs: number;
  /** For comparison with `Snapshot.leaseSeenAtMs`; never falls. */
  readonly monotonicMs: number;
  readonly prng: Prng;
  readonly policy: Policy;
  /** Of the request that asks for the decision: what it creates is part of that trace. A valid `traceparent`. */
  readonly traceParent?: string | undefined;
  newId(prefix: string): string;
}
