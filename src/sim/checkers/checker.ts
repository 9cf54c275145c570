// What a checker is: one invariant (docs/ARCHITECTURE.md), held against the committed state, the true world of guests and what tenants were told.
// It never touches what is under test.

import type { FakeWorld } from '../../agent/drivers/fake/world.ts';
import type { Report } from '../../api/agent-protocol.ts';
import type { Cache } from '../../core/state/cache.ts';
import type { Policy } from '../../core/state/context.ts';
import type { Commit, CommittedState } from '../history.ts';
import type { Excused } from '../excused.ts';
import type { Intents } from '../intents.ts';

export interface Facts {
  readonly state: CommittedState;
  readonly world: Pick<FakeWorld, 'guests' | 'guest' | 'doubleStarts'>;
  /** Absent: hosts have none. */
  readonly volumes?: Pick<FakeWorld, 'volumeDisk' | 'volumeFaults'>;
  readonly intents: Intents;
  readonly nowMs: () => number;
  /** As all control planes have it. */
  readonly policy: Policy;
  /** Of what nothing is promised, because an agent lies. */
  readonly excused: Excused;
  /** Hosts that lost their power for good. */
  readonly dead: ReadonlySet<string>;
  /** When nobody could be heard, for the store was down or the only server stood still, or was flooded; the last may last on. */
  readonly deaf: () => readonly { readonly fromMs: number; readonly toMs: number }[];
  /** Those that are up, with what they believe. */
  readonly servers: () => readonly { readonly name: string; readonly cache: Cache }[];
  /** Of all control planes, in the order of their beginning; grows as the run goes on. */
  readonly serverLives?: readonly ServerLife[];
}

/** One life of one control plane. */
export interface ServerLife {
  readonly startedMs: number;
  /** Undefined: it lives. */
  endedMs?: number;
}

/** The cache of one control plane, and a key of which it has just heard. */
export interface Cached {
  readonly server: string;
  readonly cache: Cache;
  readonly key: string;
}

/** A report as an agent sent it, whoever handles it and however often. */
export interface SentReport {
  readonly host: string;
  readonly epoch: number;
  readonly report: Report;
}

export interface Checker {
  /** Number of the invariant in docs/ARCHITECTURE.md; 0: one without a number. */
  readonly invariant: number;
  /**
   * What it still judges when a backup is restored, for then the past is another: `throughout`, or `after` the last commit of the restore.
   * Missing: nothing more; what a restore promises instead is judged by its epilogue.
   */
  readonly overRestore?: 'throughout' | 'after';
  /** The backup is restored: what it counted event by event it must count anew. */
  onRestored?(): void;
  /** After every commit, with its state already in `facts`: what it broke. */
  onCommit?(commit: Commit): string | undefined;
  /** After every change of a guest in the true world. */
  onGuest?(host: string, instanceId: string): string | undefined;
  /** What a control plane believes of a key may have changed. */
  onCached?(cached: Cached): string | undefined;
  /** Counts everything anew: where that and what was counted event by event disagree, the checker itself is at fault. */
  recount?(): string | undefined;
  /** Before a control plane handles a report. */
  onReport?(sent: SentReport): void;
  /** What is not yet, or not any more, as it must be once everything is quiet. Asked every few seconds from the end of the storm on. */
  unrest?(): Iterable<string>;
  /** Of what the last `unrest` said: what has taken so long that no later rest excuses it. */
  overdue?(): string | undefined;
}
