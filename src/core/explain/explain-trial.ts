// A trial without the instance itself, to ask the rules where it could be, or why it is where it is.

import type { Instance } from '../../api/resources/instance.ts';
import type { Snapshot } from '../state/snapshot.ts';
import { belongingOf, placeOf } from '../scheduler/neighbours/belonging.ts';
import type { Fleet } from '../scheduler/fleet.ts';

/** Runs `body` with the instance's allocation counted as free, and the instance removed from all groups. */
export function withoutItself<T>(snapshot: Snapshot, fleet: Fleet, instance: Instance, body: () => T): T {
  return fleet.tentatively(() => {
    for (const { value: allocation } of snapshot.allocationsOfConsumer(instance.metadata.id)) {
      const slot = fleet.slotOf(allocation.host);
      if (slot === undefined) continue;
      fleet.giveBack(slot, allocation.amounts, allocation.ports);
    }
    const place = placeOf(instance);
    const slot = place === undefined ? undefined : fleet.slotOf(place);
    if (slot !== undefined) fleet.groups.try(slot, belongingOf(instance), -1);
    return body();
  });
}
