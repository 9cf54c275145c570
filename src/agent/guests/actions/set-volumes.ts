// Gives a guest the volumes that it is to have, and takes others away.

import { describeError } from '../../../base/log.ts';
import type { Step } from '../../../base/concurrency/keyed-reconciler.ts';
import type { LedgerEntry } from '../../ledger/ledger.ts';
import { codeOf } from '../failure.ts';
import { nameOfWait, volumesFor } from '../guest-volumes.ts';
import { hasOtherVolumes, type Seen, textOfVolumes } from '../observe.ts';
import type { GuestParts } from '../parts.ts';

/** Volumes that the guest cannot have yet are waited for; meanwhile the others are attached and detached. */
export async function setVolumes(
  parts: GuestParts,
  { assignment }: LedgerEntry,
  { driver, guest }: Seen,
): Promise<Step> {
  const { instanceId } = assignment;
  const { notes, log, volumes } = parts;
  const { had, missing } = volumesFor(parts, assignment, guest);
  if (missing !== undefined) notes.wait(instanceId, missing);
  const keeps = (volumeId: string): boolean => guest.volumes?.includes(volumeId) === true;
  const wanted = (assignment.volumes ?? []).filter(({ volumeId }) => keeps(volumeId));
  // The path of a volume that stays is unknown.
  if (!wanted.every(({ volumeId }) => had.some((each) => each.volumeId === volumeId))) return 'rest';
  if (!hasOtherVolumes(guest, had, notes.givenTo(instanceId))) return 'rest';
  if (driver.volumes === undefined) {
    notes.setVolumeTrouble(assignment, guest, `guests of driver "${driver.name}" cannot have volumes`);
    return 'rest';
  }
  const taken = volumes.claims.take(
    had.map(({ volumeId }) => volumeId),
    instanceId,
  );
  if (taken !== undefined) {
    notes.wait(instanceId, nameOfWait(assignment, taken.volumeId, taken.by));
    return 'rest';
  }
  const abort = new AbortController();
  const text = textOfVolumes(assignment.volumes ?? []);
  notes.operations.set(instanceId, { kind: 'set-volumes', wanted: text, abort });
  log.info('changing the volumes of a guest', { instance: instanceId, volumes: had.map(({ name }) => name) });
  try {
    await driver.volumes.set(instanceId, had, abort.signal);
    notes.noteGiven(instanceId, had);
    notes.setVolumeTrouble(assignment, guest, undefined);
  } catch (error) {
    // The next look sees what there is.
    if (parts.closing() || abort.signal.aborted || codeOf(error) === 'NoSuchGuest') return 'go-on';
    notes.setVolumeTrouble(assignment, guest, describeError(error));
    throw error;
  } finally {
    notes.operations.delete(instanceId);
    volumes.claims.release(instanceId);
  }
  return 'go-on';
}
