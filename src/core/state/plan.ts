// Plan: what a decision wants to write, and the conditions that must hold. A decision ends here; server/commit.ts
// commits it.

import type { AnyRecord } from './records.ts';

export interface Change {
  readonly key: string;
  /** The revision that the decision saw; 0: the key must be absent. Negative: an uncommitted change of this process. */
  readonly ifRevision: number;
  readonly value: AnyRecord | null;
}

/** Who asked for a change. */
export interface PlanAuthor {
  /**
   * The fields of its entry in the audit log, as JSON without the braces. They are committed with the Plan, and written out then: for all
   * Plans of a commit one after the other, this takes half as long as in each of their requests.
   */
  readonly entry: () => string;
  /** What became of the entry. Fields, and no map of authors: at thousands of commits per second, a weak map costs more than the entry. */
  readonly noted: NotedEntry;
}

/** Written by the audit log of the server that commits the Plan. */
export interface NotedEntry {
  /** The number under which the entry was committed, or may have been; undefined: it was not. */
  number: number | undefined;
  /** The key of the store, among those of this server, where it then is. */
  slot: number;
  /** Whether the commit failed in a way that leaves open whether it happened. */
  doubtful: boolean;
  /** Of the line about the commit; `none`: it is not known to have happened. */
  line: 'none' | 'written' | 'comes-later';
}

export function newAuthor(write: () => string): PlanAuthor {
  let text: string | undefined;
  return { entry: () => (text ??= write()), noted: { number: undefined, slot: 0, doubtful: false, line: 'none' } };
}

export interface Plan {
  /** All or nothing. Each key at most once. */
  readonly changes: readonly Change[];
  /** Read but not written: must be unchanged as well. */
  readonly conditions?: readonly { readonly key: string; readonly ifRevision: number }[];
  /** For controllers: run again for this key after this time. */
  readonly requeueAfterMs?: number;
}

export const emptyPlan: Plan = { changes: [] };

/**
 * An empty Plan, because the request is fulfilled while the store holds `entries`. Until these are durable the Plan
 * waits for them, and fails with them.
 */
export function unchanged(...entries: readonly { readonly key: string; readonly revision: number }[]): Plan {
  return { changes: [], conditions: entries.map(({ key, revision }) => ({ key, ifRevision: revision })) };
}
