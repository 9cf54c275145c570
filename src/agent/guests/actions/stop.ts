// Stops a guest within the grace of its assignment.

import type { LedgerEntry } from '../../ledger/ledger.ts';
import type { Seen } from '../observe.ts';
import type { GuestParts } from '../parts.ts';

export async function stop(
  { notes, log, runs, closing }: GuestParts,
  { assignment }: LedgerEntry,
  { driver, guest }: Seen,
): Promise<void> {
  const { instanceId, incarnation } = guest;
  const graceMs = assignment.stopGraceMs;
  if (assignment.run !== undefined) {
    await runs.end(assignment);
    if (closing()) return; // the next agent gives the program its grace
  }
  log.info('stopping a guest', { instance: instanceId, incarnation });
  notes.operations.set(instanceId, { kind: 'stop', driver, graceMs });
  try {
    await driver.stop(instanceId, graceMs);
  } finally {
    notes.operations.delete(instanceId);
  }
}
