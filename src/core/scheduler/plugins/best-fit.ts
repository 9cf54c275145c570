// The scores of best-fit: the share of the host's CPUs, memory and instance limit that would be used. Fuller is better.

import type { Fleet } from '../fleet.ts';
import type { RoomPlugin } from '../framework.ts';
import type { Request } from '../request.ts';
import type { Slot } from '../engine/slot.ts';

/** The instance limit of a host without a quota. */
const instancesMaxDefault = 100;

export const cpuUtilization: RoomPlugin = {
  name: 'cpu-utilization',
  summary: "how much of the host's CPUs would be used",
  dependsOn: 'room',
  prepare: (request, fleet) => ({ score: usedShare('VCPU', request, fleet) }),
};

export const memoryUtilization: RoomPlugin = {
  name: 'memory-utilization',
  summary: "how much of the host's memory would be used",
  dependsOn: 'room',
  prepare: (request, fleet) => ({ score: usedShare('MEMORY_MB', request, fleet) }),
};

export const guestCount: RoomPlugin = {
  name: 'guest-count',
  summary: "how much of the host's limit of instances would be used",
  dependsOn: 'room',
  prepare: (_request, { hosts, guests }) => ({
    score(slot) {
      const max = hosts[slot]?.spec.instancesMax ?? instancesMaxDefault;
      return 100 * Math.min(1, ((guests[slot] ?? 0) + 1) / Math.max(1, max));
    },
  }),
};

function usedShare(resourceClass: string, { assigned }: Request, fleet: Fleet): (slot: Slot) => number {
  const column = fleet.column(resourceClass);
  const asked = assigned[resourceClass] ?? 0;
  return (slot) => {
    const capacity = column?.capacity(slot) ?? 0;
    return capacity === 0 ? 0 : 100 * Math.min(1, ((column?.used(slot) ?? 0) + asked) / capacity);
  };
}
