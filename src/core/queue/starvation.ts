// Starvation: the host whose room is to be kept for one that has waited too long, because smaller ones always take what comes free.

import { fleetOf } from '../scheduler/fleet.ts';
import { verdictsOf } from '../scheduler/engine/full-scan.ts';
import type { Request } from '../scheduler/request.ts';
import type { Slot } from '../scheduler/engine/slot.ts';
import type { Snapshot } from '../state/snapshot.ts';

/** Room is kept on one host in so many at most: the rest of the fleet works on. */
const hostsPerNominee = 8;

/** The one that needs the least more, of those that would take it were they empty. Null: none would, or enough keep room already. */
export function hostToKeep(snapshot: Snapshot, request: Request): string | null {
  const fleet = fleetOf(snapshot);
  const { nominations } = fleet;
  if (nominations.size >= Math.ceil(fleet.count / hostsPerNominee)) return null;
  const near: { readonly slot: Slot; readonly missing: number }[] = [];
  for (let slot = 0; slot < fleet.length; slot++) {
    const missing = missingOf(snapshot, request, slot);
    if (missing !== null) near.push({ slot, missing });
  }
  near.sort((a, b) => a.missing - b.missing || ((fleet.names[a.slot] ?? '') < (fleet.names[b.slot] ?? '') ? -1 : 1));
  for (const { slot } of near) if (takesWhenEmpty(snapshot, request, slot)) return fleet.names[slot] ?? null;
  return null;
}

/** How much is missing, as the largest share of a class of the host; null when it could not hold it at all, or keeps room for another. */
function missingOf(snapshot: Snapshot, { assigned }: Request, slot: Slot): number | null {
  const fleet = fleetOf(snapshot);
  if (!fleet.hosts[slot] || fleet.nominations.has(fleet.names[slot] ?? '')) return null;
  let missing = 0;
  for (const resourceClass in assigned) {
    const asked = assigned[resourceClass] ?? 0;
    const column = fleet.column(resourceClass);
    const capacity = column?.capacity(slot) ?? 0;
    if (asked > capacity) return null;
    if (asked > 0) missing = Math.max(missing, (asked + (column?.used(slot) ?? 0) - capacity) / capacity);
  }
  return missing;
}

function takesWhenEmpty(snapshot: Snapshot, request: Request, slot: Slot): boolean {
  const fleet = fleetOf(snapshot);
  return fleet.tentatively(() => {
    for (const { value } of snapshot.allocationsOnHost(fleet.names[slot] ?? ''))
      fleet.giveBack(slot, value.amounts, value.ports);
    return verdictsOf(request, fleet)(slot).refusals.length === 0;
  });
}
