// Which guests of this host have a place in its network, as their records say: of all drivers, also of one that cannot see its guests yet. Only
// reads.

import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { readGuestRecord, readPreviousRecord } from '../drivers/guest-life/guest-record.ts';
import { idPattern } from '../drivers/guest-life/slots.ts';
import type { PlacedGuest } from './host-network.ts';

/** `roots`: the folders that drivers have their guests in. What cannot be read has no place: its driver says so. */
export async function placedGuests(roots: readonly string[]): Promise<readonly PlacedGuest[]> {
  const found: PlacedGuest[] = [];
  for (const root of roots) {
    for (const instanceId of (await readdir(root).catch(() => [])).filter((name) => idPattern.test(name))) {
      const directory = join(root, instanceId);
      const current = await readGuestRecord(directory).catch(() => undefined);
      // A guest that runs is adopted by it.
      const read = current?.found === 'damage' ? await readPreviousRecord(directory).catch(() => undefined) : current;
      if (read?.found !== 'record') continue;
      const { network, created, launching, state } = read.record;
      // One that was never made whole has given its place back, and another may have it since.
      const mayRun = created || (launching && state === 'preparing');
      if (network !== undefined && mayRun) found.push({ instanceId, directory, network });
    }
  }
  return found;
}
