// tight-fit: hosts in use before empty ones, and among them one that would be left almost full, the fullest first. What is left of a host
// in the middle is worth the same everywhere: only little leftovers are lost.

import { gpuClass } from '../../../api/resources/host-rules.ts';
import type { RoomPlugin } from '../framework.ts';

/**
 * A host is almost full when less than this share is left of what it will run out of first. Found by replays of recorded traces (the
 * bench `packing`): there it needs less of hosts' time than first fit and best fit, or as little as the better of them.
 */
const almostFullShare = 1 / 4;
/**
 * Where GPUs are, their fragments decide, if they are weighed, and this rule only among equals: its 100 points there are fewer than one
 * step of theirs (0.055 points at a difference of two GPUs), and more than the 1/1024 that scores are told apart by.
 */
const shareBesideGpus = 1 / 2048;

export const tightFit: RoomPlugin = {
  name: 'tight-fit',
  summary: 'hosts in use first, and of those one that would be almost full',
  dependsOn: 'room',
  prepare({ assigned, weights }, fleet) {
    if ((weights['tight-fit'] ?? 0) === 0) return null;
    const columns = [...fleet.columns()].map((column) => ({ column, asked: assigned[column.resourceClass] ?? 0 }));
    const gpus = (weights['gpu-fragmentation'] ?? 0) > 0 ? fleet.column(gpuClass) : undefined;
    return {
      score(slot) {
        if ((fleet.guests[slot] ?? 0) === 0) return 0;
        let left = 1;
        for (const { column, asked } of columns) {
          const all = column.capacity(slot);
          if (all > 0) left = Math.min(left, (all - column.used(slot) - asked) / all);
        }
        const points = left >= almostFullShare ? 50 : 50 + 50 * (1 - Math.max(0, left) / almostFullShare);
        return gpus && gpus.capacity(slot) > 0 ? points * shareBesideGpus : points;
      },
    };
  },
};
