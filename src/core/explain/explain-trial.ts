// A trial in which an instance is nowhere, so that rules can be asked where it could be, or why it is where it is.

import type { Instance } from '../../api/resources/instance.ts';
import type { Snapshot } from '../state/snapshot.ts';
import { belongingOf, placeOf } from '../scheduler/neighbours/belonging.ts';
import type { Fleet } from '../scheduler/fleet.ts';

/** Runs `body` with what the instance holds counted as free, and the instance as a member of no group. */
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
