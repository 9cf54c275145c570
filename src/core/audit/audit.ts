// The audit: every rule holds a part of the fleet's records against another and says what does not fit. Rules only look; a repair is a
// Plan like any other. A new rule is a file and a line here.

import type { Finding } from '../../api/audit.ts';
import type { Context } from '../state/context.ts';
import type { Plan } from '../state/plan.ts';
import type { Snapshot } from '../state/snapshot.ts';
import { claimsOfInstances } from './claims.ts';
import { leakedRoom } from './leaked-room.ts';
import { orphanRecords } from './orphan-records.ts';
import { stuck } from './stuck.ts';
import { unconfirmedGuests } from './unconfirmed-guests.ts';
import { unknownGuests } from './unknown-guests.ts';
import { useOfProviders } from './use-of-providers.ts';

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

const rules: readonly Rule[] = [
  useOfProviders,
  leakedRoom,
  claimsOfInstances,
  orphanRecords,
  unknownGuests,
  unconfirmedGuests,
  stuck,
];

/** `undefined` where a record is as it should be. */
export function* audit(snapshot: Snapshot): Generator<Fault | undefined, void> {
  for (const rule of rules) yield* rule(snapshot);
}
