// Starts a guest that is here and stopped.

import { isToStartAgain } from '../../../api/resources/instance.ts';
import type { Step } from '../../../base/concurrency/keyed-reconciler.ts';
import type { LedgerEntry } from '../../ledger/ledger.ts';
import { codeOf, fail, failUnlessRecorded, failureOf } from '../failure.ts';
import { releaseVolumes, takeVolumes } from '../guest-volumes.ts';
import { oldestGuest, type Seen } from '../observe.ts';
import type { GuestParts } from '../parts.ts';

export async function start(parts: GuestParts, entry: LedgerEntry, { driver, guest }: Seen): Promise<Step> {
  const { assignment } = entry;
  const { instanceId, incarnation } = guest;
  if (takeVolumes(parts, assignment) === undefined) return 'rest';
  parts.log.info('starting a guest', { instance: instanceId, incarnation });
  parts.notes.operations.set(instanceId, { kind: 'start' });
  try {
    await driver.start(instanceId);
  } catch (error) {
    if (parts.closing() || codeOf(error) === 'NoSuchGuest') return 'go-on'; // the next look sees what there is
    if (codeOf(error) === 'Aborted') throw error;
    const now = oldestGuest(parts, instanceId, driver.name)?.guest;
    // Recorded by the driver or not: without a run of its own the guest would count as to be started again, for ever.
    if (now && isToStartAgain(now, assignment.startAgain)) fail(parts, entry, failureOf(error));
    else failUnlessRecorded(parts, entry, driver, error);
  } finally {
    parts.notes.operations.delete(instanceId);
    releaseVolumes(parts, assignment);
  }
  return 'go-on';
}
