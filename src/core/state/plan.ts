// Plan: what a decision wants written, and what must still be true for that. Deciding ends here; server/commit.ts does it.

import type { AnyRecord } from './records.ts';

export interface Change {
  readonly key: string;
  /** The revision the decision saw; 0: only if absent. Negative: a change of this process that is not yet committed. */
  readonly ifRevision: number;
  readonly value: AnyRecord | null;
}

export interface Plan {
  /** All or nothing. A key stands once. */
  readonly changes: readonly Change[];
  /** Read but not written: must be unchanged too. */
  readonly conditions?: readonly { readonly key: string; readonly ifRevision: number }[];
  /** For controllers: look at this key again after so long. */
  readonly requeueAfterMs?: number;
}

export const emptyPlan: Plan = { changes: [] };

/**
 * Nothing to write, because what was asked for is so already: as long as `entries` are so in the store, which is asked. Until they are
 * durable the Plan waits for their fate, and shares it.
 */
export function unchanged(...entries: readonly { readonly key: string; readonly revision: number }[]): Plan {
  return { changes: [], conditions: entries.map(({ key, revision }) => ({ key, ifRevision: revision })) };
}
