// What a controller is: it looks at one key of the snapshot and says what should be written. It never learns why it was woken,
// so the common path and the recovery path are one.

import type { DueLine } from '../queue/queue.ts';
import type { Context, Policy } from '../state/context.ts';
import type { Plan } from '../state/plan.ts';
import type { RecordKind } from '../state/records.ts';
import type { RecordChange, Snapshot } from '../state/snapshot.ts';

export interface Controller {
  readonly name: string;
  /** Whose changes may wake it: it is not asked about others. */
  readonly watches: readonly RecordKind[];
  /** The keys to look at again after this change. */
  wakes(change: RecordChange, snapshot: Snapshot): Iterable<string>;
  /** Every key there is, for the start and the periodic full pass. */
  keys(snapshot: Snapshot): Iterable<string>;
  reconcile(snapshot: Snapshot, key: string, ctx: Context): Plan;
  /**
   * Where keys compete for the same things: who says which of those due is first. Each Plan is laid over the snapshot before the next
   * key is taken. Without it keys are taken as they come.
   */
  dueLine?(snapshot: Snapshot, policy: Policy): DueLine;
}

export function* keysOfKind(snapshot: Snapshot, kind: RecordKind): Iterable<string> {
  for (const entry of snapshot.list(kind)) yield entry.key;
}
