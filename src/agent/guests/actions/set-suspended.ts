// Suspends or resumes a guest.

import { describeError } from '../../../base/log.ts';
import type { Step } from '../../../base/concurrency/keyed-reconciler.ts';
import type { LedgerEntry } from '../../ledger/ledger.ts';
import { codeOf } from '../failure.ts';
import type { Seen } from '../observe.ts';
import type { GuestParts } from '../parts.ts';

/**
 * A guest that cannot be suspended keeps running, and its status says why: the control plane asks only where suspension is
 * possible, but hosts and drivers change.
 */
export async function setSuspended(
  parts: GuestParts,
  { assignment }: LedgerEntry,
  { driver, guest }: Seen,
  verb: 'suspend' | 'resume',
): Promise<Step> {
  const { instanceId } = assignment;
  const { notes, log } = parts;
  if (driver.suspension === undefined) {
    notes.wait(instanceId, `cannot ${verb} it: guests of driver "${driver.name}" cannot be suspended`);
    return 'rest';
  }
  const { incarnation } = guest;
  log.info(verb === 'suspend' ? 'suspending a guest' : 'resuming a guest', { instance: instanceId, incarnation });
  try {
    await driver.suspension[verb](instanceId);
    if (verb === 'resume') parts.moves.noteRuns(instanceId, parts.clock.monotonicMs());
  } catch (error) {
    if (parts.closing() || codeOf(error) === 'NoSuchGuest') return 'go-on'; // the next look sees what there is
    notes.wait(instanceId, describeError(error));
    throw error;
  }
  return 'go-on';
}
