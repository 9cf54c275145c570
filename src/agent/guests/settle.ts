// Whether an incarnation has left this host without a trace.

import type { LedgerEntry } from '../ledger/ledger.ts';
import { driverMissing } from './failure.ts';
import type { Seen } from './observe.ts';
import type { GuestParts } from './parts.ts';

/** An older incarnation whose guest is gone, or has made way for a newer one, has left no trace. */
export function settleOlder(parts: GuestParts, newest: LedgerEntry, seen: Seen | undefined): void {
  for (const entry of parts.ledger.entriesOf(newest.assignment.instanceId)) {
    const { assignment } = entry;
    if (assignment.incarnation === newest.assignment.incarnation || assignment.want !== 'absent') continue;
    if (seen !== undefined && seen.guest.incarnation <= assignment.incarnation) continue;
    if (canTell(parts, entry)) parts.notes.settle(assignment, 'absent');
  }
}

/** Whether "nothing is here" can be told from "nothing can be seen". */
export function canTell({ drivers, log }: GuestParts, { assignment, failure }: LedgerEntry): boolean {
  if (drivers.some(({ name }) => name === assignment.driver)) return true;
  if (failure?.code === driverMissing) return true; // no guest was ever made
  log.warn('cannot tell what is left of an instance: its driver is not configured here any more', {
    instance: assignment.instanceId,
    driver: assignment.driver,
  });
  return false;
}
