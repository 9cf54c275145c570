// quota: the host has no more instances than its operator allows. Stopped ones count, for their disks are there.

import { refuse, type RoomPlugin } from '../framework.ts';

export const quota: RoomPlugin = {
  name: 'quota',
  summary: 'the host has fewer instances than its operator allows',
  dependsOn: 'room',
  prepare: (_request, { hosts, guests }) => ({
    filter(slot) {
      const max = hosts[slot]?.spec.instancesMax;
      if (max === undefined || (guests[slot] ?? 0) < max) return null;
      return refuse('InstancesMax', () => `it has ${guests[slot]} instances, and may have ${max}`);
    },
  }),
};
