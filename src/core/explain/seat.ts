// Seat: places several waiting requests one after the other, each with the earlier ones in place. In a trial: the
// places stay claimed until it ends.

import type { Allocation } from '../state/records.ts';
import type { Snapshot } from '../state/snapshot.ts';
import { hold } from './count-more.ts';
import type { Request } from '../scheduler/request.ts';
import { engineOf, placementAt } from '../scheduler/schedule.ts';
import type { Slot } from '../scheduler/engine/slot.ts';

export interface Seated {
  readonly slot: Slot;
  readonly request: Request;
  readonly held: Allocation['amounts'];
}

/** In this order; a request without a place is returned as left, and the others continue. */
export function seat(
  snapshot: Snapshot,
  requests: readonly Request[],
): { readonly seated: readonly Seated[]; readonly left: readonly Request[] } {
  const engine = engineOf(snapshot);
  const { fleet } = engine;
  const seated: Seated[] = [];
  const left: Request[] = [];
  for (const request of requests) {
    const choice = engine.choose(request);
    if (!choice) {
      left.push(request);
      continue;
    }
    const { slot } = choice;
    const { held } = placementAt(fleet, request, choice);
    hold(fleet, request, slot, held, 1);
    seated.push({ slot, request, held });
  }
  return { seated, left };
}
