// Suspends a guest to disk.

import { describeError } from '../../../base/log.ts';
import type { Step } from '../../../base/concurrency/keyed-reconciler.ts';
import type { LedgerEntry } from '../../ledger/ledger.ts';
import { codeOf } from '../failure.ts';
import type { Seen } from '../observe.ts';
import type { GuestParts } from '../parts.ts';

/** A guest that cannot be saved keeps running, and its status says why; it is tried again. */
export async function save(parts: GuestParts, { assignment }: LedgerEntry, { driver, guest }: Seen): Promise<Step> {
  const { instanceId, incarnation } = assignment;
  const { notes, log } = parts;
  if (driver.suspension?.save === undefined) {
    notes.wait(instanceId, `cannot suspend it to disk: driver "${driver.name}" does not save the memory of guests`);
    return 'rest';
  }
  log.info('suspending a guest to disk', { instance: instanceId, incarnation: guest.incarnation });
  const abort = new AbortController();
  notes.operations.set(instanceId, { kind: 'save', incarnation, abort });
  try {
    await driver.suspension.save(instanceId, abort.signal);
  } catch (error) {
    if (parts.closing() || abort.signal.aborted || codeOf(error) === 'NoSuchGuest') return 'go-on'; // the next look sees what there is
    notes.wait(instanceId, describeError(error));
    throw error;
  } finally {
    notes.operations.delete(instanceId);
  }
  return 'go-on';
}
