// What a rule of the audit says, and what a rule is.

import type { Finding } from '../../api/audit.ts';
import type { Context } from '../state/context.ts';
import type { Plan } from '../state/plan.ts';
import type { Snapshot } from '../state/snapshot.ts';

/** What does not fit; the same from one look to the next as long as `key` is the same. */
export interface Fault extends Omit<Finding, 'ageMs' | 'repair'> {
  readonly key: string;
  readonly repair?: {
    /** What is done, for people: `gives back ...`. */
    readonly what: string;
    /** It destroys something on a host. */
    readonly destroys?: true;
    /** Decided when it is applied, on the snapshot of then; null: it has mended itself. */
    readonly plan: (snapshot: Snapshot, ctx: Context) => Plan | null;
  };
}

/** Looks at one record after the other, so that a large fleet can be looked at in slices. */
export type Rule = (snapshot: Snapshot) => Iterable<Fault | undefined>;
