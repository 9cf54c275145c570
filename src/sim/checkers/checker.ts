// What a checker is: one invariant (docs/ARCHITECTURE.md), compared with the committed state, the true world of guests and the answers to tenants.
// It never touches what is under test.

import type { FakeWorld } from '../../agent/drivers/fake/world.ts';
import type { Report } from '../../api/agent-protocol.ts';
import type { Cache } from '../../core/state/cache.ts';
import type { Policy } from '../../core/state/context.ts';
import type { Commit, CommittedState } from '../history.ts';
import type { Excused } from '../excused.ts';
import type { Intents } from '../intents.ts';
import type { JobRequests } from '../job-requests.ts';
import type { TaskRequests } from '../task-requests.ts';
import type { MessageEvent } from '../world/broker/broker-parts.ts';
import type { SimBroker } from '../world/broker/sim-broker.ts';
import type { FalseMachines } from '../world/false-machines.ts';
import type { FalseNodes } from '../world/false-nodes.ts';
import type { Delivery, FalseReceivers } from '../world/false-receivers.ts';

export interface Facts {
  readonly state: CommittedState;
  readonly world: Pick<FakeWorld, 'guests' | 'guest' | 'doubleStarts'>;
  /** Absent: hosts have none. */
  readonly volumes?: Pick<FakeWorld, 'volumeDisk' | 'volumeFaults'>;
  readonly intents: Intents;
  readonly nowMs: () => number;
  /** As all control planes have it. */
  readonly policy: Policy;
  /** Hosts and instances of which nothing is expected, because an agent lies. */
  readonly excused: Excused;
  /** Hosts that lost their power for good. */
  readonly dead: ReadonlySet<string>;
  /** When no heartbeat could be read: the store was down, or the only server was paused or flooded. The last may last on. */
  readonly deaf: () => readonly { readonly fromMs: number; readonly toMs: number }[];
  /** Control planes that are up, with their caches. */
  readonly servers: () => readonly {
    readonly name: string;
    readonly cache: Cache;
    readonly wallMs?: (() => number) | undefined;
  }[];
  /** Of all control planes, in the order in which they started; grows during the run. */
  readonly serverLives?: readonly ServerLife[];
  /** Absent: there is no broker. */
  readonly messages?: MessageFacts | undefined;
  /** Absent: there is no task queue. */
  readonly taskMessages?: TaskMessageFacts | undefined;
  /** Absent: there are no receivers of webhooks. */
  readonly receivers?: ReceiverFacts | undefined;
  /** Absent: there is no inventory of outside hosts. */
  readonly nodes?: NodeFacts | undefined;
  /** Absent: nothing makes machines for spares. */
  readonly machines?: MachineFacts | undefined;
  /** Workloads are updated, and nothing goes wrong with hosts and guests meanwhile. */
  readonly calmUpdates?: boolean;
  /** What the control planes have of the log of an instance's run. */
  readonly runLog?: (instanceId: string) => string;
}

export interface MessageFacts {
  readonly requests: Pick<JobRequests, 'accepted' | 'of'>;
  readonly broker: Pick<SimBroker, 'ready' | 'stored' | 'storedResult' | 'resultsBound' | 'settings'>;
}

export interface TaskMessageFacts {
  readonly requests: Pick<TaskRequests, 'of' | 'all'>;
  readonly broker: Pick<SimBroker, 'ready' | 'stored' | 'settings'>;
}

export type MachineFacts = Pick<FalseMachines, 'isThere' | 'isAbandoned' | 'owed'>;

export interface NodeFacts extends Pick<FalseNodes, 'node' | 'names'> {
  /** The clocks of all servers agree, so that they know which holds are fresh. */
  readonly isExact: boolean;
}

export type ReceiverFacts = Pick<FalseReceivers, 'takes'>;

/** One life of one control plane. */
export interface ServerLife {
  readonly startedMs: number;
  /** Undefined: it lives. */
  endedMs?: number;
}

/** The cache of one control plane, and a key that has just changed in it. */
export interface Cached {
  readonly server: string;
  readonly cache: Cache;
  readonly key: string;
}

/** A report as an agent sent it; it may be handled several times, by any control plane. */
export interface SentReport {
  readonly host: string;
  readonly epoch: number;
  readonly report: Report;
}

export interface Checker {
  /** Number of the invariant in docs/ARCHITECTURE.md; 0: one without a number. */
  readonly invariant: number;
  /**
   * When it goes on checking although a restore changes the past: `throughout`, or `after` the last commit of the restore. Missing: it
   * stops at the restore; the epilogue checks what a restore promises instead.
   */
  readonly overRestore?: 'throughout' | 'after';
  /** The backup is restored: what it counted event by event it must count again. */
  onRestored?(): void;
  /** After every commit, with its state already in `facts`: what the commit broke. */
  onCommit?(commit: Commit): string | undefined;
  /** After every change of a guest in the true world. */
  onGuest?(host: string, instanceId: string): string | undefined;
  /** The cached value of a key may have changed in a control plane. */
  onCached?(cached: Cached): string | undefined;
  /** Counts everything again. When that differs from the count event by event, the checker itself is at fault. */
  recount?(): string | undefined;
  /** After something happened at the broker of jobs. */
  onMessage?(event: MessageEvent): string | undefined;
  /** The same at the broker of tasks. */
  onTaskMessage?(event: MessageEvent): string | undefined;
  /** Before a control plane handles a report. */
  onReport?(sent: SentReport): void;
  /** A message of a webhook has reached its receiver. */
  onDelivery?(delivery: Delivery): string | undefined;
  /** What is not as it must be at rest. Asked every few seconds from the end of the storm on. */
  unrest?(): Iterable<string>;
  /** Of what the last `unrest` found: what has taken so long that no later rest excuses it. */
  overdue?(): string | undefined;
}
