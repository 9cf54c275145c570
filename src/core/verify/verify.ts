// The verify: each rule compares two parts of the fleet's records and reports what is inconsistent. Rules only read; a
// repair is a Plan like any other. A new rule is a file and a line here.

import type { Snapshot } from '../state/snapshot.ts';
import { claimsOfInstances } from './claims.ts';
import type { Fault, Rule } from './fault.ts';
import { leakedRoom } from './leaked-room.ts';
import { orphanRecords } from './orphan-records.ts';
import { stuck } from './stuck.ts';
import { unconfirmedGuests } from './unconfirmed-guests.ts';
import { unknownGuests } from './unknown-guests.ts';
import { useOfProviders } from './use-of-providers.ts';
import { volumes } from './volumes.ts';

const rules: readonly Rule[] = [
  useOfProviders,
  leakedRoom,
  claimsOfInstances,
  orphanRecords,
  unknownGuests,
  unconfirmedGuests,
  stuck,
  volumes,
];

/** Yields `undefined` for a consistent record. */
export function* verify(snapshot: Snapshot): Generator<Fault | undefined, void> {
  for (const rule of rules) yield* rule(snapshot);
}
