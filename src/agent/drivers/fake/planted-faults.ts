// The faults planted in a fake world that no guest has met yet. A fault is used up after `times` guests.

import type { FakeFault, FakeGuest } from './fake-guest.ts';

export class PlantedFaults {
  #planted: { readonly fault: FakeFault; left: number; readonly onTaken: () => void }[] = [];

  add(fault: FakeFault, onTaken: () => void): void {
    this.#planted.push({ fault, left: fault.times ?? 1, onTaken });
  }

  /** The faults that this new guest meets. */
  take(guest: Pick<FakeGuest, 'host' | 'instanceId' | 'imageName'>): FakeFault[] {
    const hits = this.#planted.filter(({ fault }) => matches(fault, guest));
    for (const hit of hits) {
      hit.left -= 1;
      hit.onTaken();
    }
    this.#planted = this.#planted.filter((each) => each.left > 0);
    return hits.map((hit) => hit.fault);
  }
}

function matches(fault: FakeFault, guest: Pick<FakeGuest, 'host' | 'instanceId' | 'imageName'>): boolean {
  return (
    (fault.host ?? guest.host) === guest.host &&
    (fault.instanceId ?? guest.instanceId) === guest.instanceId &&
    (fault.imageName ?? guest.imageName) === guest.imageName
  );
}
