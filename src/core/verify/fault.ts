// The contract of a rule of the consistency check, and what it reports.

import type { Finding } from '../../api/verify.ts';
import type { Context } from '../state/context.ts';
import type { Plan } from '../state/plan.ts';
import type { Snapshot } from '../state/snapshot.ts';

/** An inconsistency; the same in two passes when `key` is the same. */
export interface Fault extends Omit<Finding, 'ageMs' | 'repair'> {
  readonly key: string;
  readonly repair?: {
    /** The repair in words: `gives back ...`. */
    readonly what: string;
    /** The repair deletes something on a host. */
    readonly destroys?: true;
    /** Decided when it is applied, on the snapshot of that time; null when nothing needs repair any more. */
    readonly plan: (snapshot: Snapshot, ctx: Context) => Plan | null;
  };
}

/** Checks one record after the other, so that a large fleet can be checked in slices. */
export type Rule = (snapshot: Snapshot) => Iterable<Fault | undefined>;
