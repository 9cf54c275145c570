// The contract of a controller: it reads one key of the snapshot and returns what should be written. It never learns
// why it was woken, so the common path and the recovery path are one.

import type { DueLine } from '../queue/due-lines.ts';
import type { Context, Policy } from '../state/context.ts';
import type { Plan } from '../state/plan.ts';
import type { RecordKind } from '../state/records.ts';
import type { RecordChange, Snapshot } from '../state/snapshot.ts';

export interface Controller {
  readonly name: string;
  /** Kinds of records whose changes may wake it; it is not called for others. */
  readonly watches: readonly RecordKind[];
  /** The keys to reconcile after this change. */
  wakes(change: RecordChange, snapshot: Snapshot): Iterable<string>;
  /** All keys, for the start and the periodic full pass. */
  keys(snapshot: Snapshot): Iterable<string>;
  reconcile(snapshot: Snapshot, key: string, ctx: Context): Plan;
  /**
   * For keys that compete for the same resources: the order of those due. Each Plan is laid over the snapshot before
   * the next key is taken. Without it keys are taken as they arrive.
   */
  dueLine?(snapshot: Snapshot, policy: Policy): DueLine;
}

/** Timers are limited to 24 days, and a clock may be set: longer waits wake up in between. */
export const sleepMsMax = 3_600_000;

/** How long a controller sleeps until the next time of a schedule; undefined: there is none. */
export function untilNextTimeMs(nextMs: number | undefined, nowMs: number): number {
  return nextMs === undefined ? sleepMsMax : Math.min(sleepMsMax, Math.max(1_000, nextMs - nowMs));
}

export function* keysOfKind(snapshot: Snapshot, kind: RecordKind): Iterable<string> {
  for (const entry of snapshot.list(kind)) yield entry.key;
}
