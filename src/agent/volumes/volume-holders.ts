// Which guests have a volume, as far as the drivers of this host can tell.

import type { Driver, Guest, GuestVolumes } from '../drivers/driver.ts';
import type { Ledger } from '../ledger/ledger.ts';

export interface Holder {
  readonly instanceId: string;
  /** Undefined: the guest is damaged, and its driver cannot change a volume of it. */
  readonly volumes: GuestVolumes | undefined;
  /** Its hypervisor runs, or may begin to at any moment. */
  readonly running: boolean;
}

export interface HolderSources {
  readonly drivers: readonly Driver[];
  /** As for guests: before that, a driver's guests cannot be seen, and may have any volume. */
  readonly ready: (driver: Driver) => boolean;
  readonly ledger: Ledger;
}

/** All guests that have the volume, and a driver that may have another, if there is one. */
export function holdersOf(
  { drivers, ready, ledger }: HolderSources,
  volumeId: string,
): { readonly holders: readonly Holder[]; readonly blind: string | undefined } {
  const holders: Holder[] = [];
  let blind: string | undefined;
  for (const driver of drivers) {
    if (!ready(driver)) {
      if (driver.volumes !== undefined) blind ??= driver.name;
      continue;
    }
    for (const guest of driver.guests()) {
      const { instanceId, state, damaged } = guest;
      // What a damaged guest has, and whether it runs, is unknown: it may have all that its instance was ever given.
      const has = damaged ? assignedTo(ledger, instanceId).includes(volumeId) : guest.volumes?.includes(volumeId);
      if (has !== true) continue;
      const running = state === 'running' || state === 'suspended' || state === 'preparing' || damaged === true;
      holders.push({ instanceId, volumes: damaged ? undefined : driver.volumes, running });
    }
  }
  return { holders, blind };
}

/** The guests of an instance, and the volumes that they have or may have. */
export function holdingsOf(
  { drivers, ready, ledger }: HolderSources,
  instanceId: string,
): { readonly guests: readonly Guest[]; readonly volumes: readonly string[] } {
  const guests = drivers.flatMap((driver) =>
    ready(driver) ? driver.guests().filter((guest) => guest.instanceId === instanceId) : [],
  );
  const volumes = guests.flatMap((guest) => (guest.damaged ? assignedTo(ledger, instanceId) : (guest.volumes ?? [])));
  return { guests, volumes };
}

function assignedTo(ledger: Ledger, instanceId: string): string[] {
  return ledger
    .entriesOf(instanceId)
    .flatMap(({ assignment }) => (assignment.volumes ?? []).map(({ volumeId }) => volumeId));
}
