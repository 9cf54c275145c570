// Removes a guest with its disk.

import { DriverError } from '../../host/driver-error.ts';
import type { LedgerEntry } from '../../ledger/ledger.ts';
import { oldestGuest, type Seen } from '../observe.ts';
import type { GuestParts } from '../parts.ts';

export async function remove(parts: GuestParts, entry: LedgerEntry, seen: Seen | undefined): Promise<void> {
  const { drivers, ledger, log, notes, runs } = parts;
  const { instanceId, incarnation, driver: assigned } = entry.assignment;
  const driver = seen?.driver ?? drivers.find(({ name }) => name === assigned);
  if (driver !== undefined) {
    log.info('removing a guest', { instance: instanceId, incarnation: seen?.guest.incarnation ?? incarnation });
    await driver.remove(instanceId);
    if (oldestGuest(parts, instanceId, assigned)?.driver === driver) {
      throw new DriverError('Internal', `driver "${driver.name}" says it removed ${instanceId}, and still shows it`);
    }
  }
  if (seen !== undefined && seen.guest.incarnation !== incarnation) return; // the entry's failure is of another incarnation
  if (driver === undefined) notes.settle(entry.assignment, 'absent');
  notes.forgetGuest(instanceId);
  if (runs.has(instanceId)) await runs.forget(instanceId);
  ledger.setFailure(entry, undefined);
}
