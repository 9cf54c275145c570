// quota: the host has no more instances than its operator allows. Stopped ones count, because their disks remain.

import { refuse, type RoomPlugin } from '../framework.ts';

export const quota: RoomPlugin = {
  name: 'quota',
  summary: 'the host has fewer instances than its operator allows',
  dependsOn: 'room',
  prepare(_request, { guests, guestsMax, quotas }) {
    if (quotas === 0) return null;
    const full = refuse('InstancesMax', (slot) => `it has ${guests[slot]} instances, and may have ${guestsMax[slot]}`);
    return { filter: (slot) => ((guests[slot] ?? 0) < (guestsMax[slot] ?? 0) ? null : full) };
  },
};
