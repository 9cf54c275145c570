// Plans for callers who may not know what others have on a host: what is there and what becomes of it, without names.

import type { PlannedGuest } from '../../api/plans/host-plan.ts';

export function guestsWithoutNames(
  guests: readonly PlannedGuest[],
  knows: (project: string) => boolean,
): PlannedGuest[] {
  return guests.map((guest) => (knows(guest.project) ? guest : withoutName(guest)));
}

/** Messages may name volumes, jobs and workloads. */
function withoutName({ message: _, ...guest }: PlannedGuest): PlannedGuest {
  return { ...guest, name: guest.id, reasons: guest.reasons.map(({ code }) => ({ code, message: code })) };
}
