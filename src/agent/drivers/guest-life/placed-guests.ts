// Reads from the records of all guests of this host which of them have a place in its network, also while their driver cannot see its guests
// yet. Changes nothing.

import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { readGuestRecord, readPreviousRecord } from './guest-record.ts';
import { idPattern } from './slots.ts';
import type { PlacedGuest } from '../../network/host-network.ts';

/** `roots`: the folders in which drivers keep their guests. A record that cannot be read is skipped; its driver reports it. */
export async function placedGuests(roots: readonly string[]): Promise<readonly PlacedGuest[]> {
  const found: PlacedGuest[] = [];
  for (const root of roots) {
    for (const instanceId of (await readdir(root).catch(() => [])).filter((name) => idPattern.test(name))) {
      const directory = join(root, instanceId);
      const current = await readGuestRecord(directory).catch(() => undefined);
      // The driver adopts a running guest by its previous record.
      const read = current?.found === 'damage' ? await readPreviousRecord(directory).catch(() => undefined) : current;
      if (read?.found !== 'record') continue;
      const { network, created, launching, state } = read.record;
      // A guest that was never completely created has released its place, and another guest may have it since.
      const mayRun = created || (launching && state === 'preparing');
      if (network !== undefined && mayRun) found.push({ instanceId, directory, network });
    }
  }
  return found;
}
