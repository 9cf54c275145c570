// Starvation: which host to reserve for an instance that has waited too long because smaller ones always take the free
// room.

import { fleetOf } from '../scheduler/fleet.ts';
import { verdictsOf } from '../scheduler/engine/full-scan.ts';
import type { Request } from '../scheduler/request.ts';
import type { Slot } from '../scheduler/engine/slot.ts';
import type { Snapshot } from '../state/snapshot.ts';

/** At most one host in this many is reserved: the rest of the fleet keeps working. */
const hostsPerNominee = 8;

/**
 * The host that lacks the least, of those that could take the instance when empty. Null: there is none, or enough hosts
 * are reserved already.
 */
export function hostToReserve(snapshot: Snapshot, request: Request): string | null {
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

/**
 * The missing amount as the largest share of a class of the host; null when the host is too small or reserved for
 * another instance.
 */
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
