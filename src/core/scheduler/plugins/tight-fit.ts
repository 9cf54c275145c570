// tight-fit: hosts in use before empty ones, and first those that would be left almost full, the fullest first. All
// other hosts in use score the same: only small leftovers are wasted.

import { gpuClass } from '../../../api/resources/host-rules.ts';
import type { RoomPlugin } from '../framework.ts';

/**
 * A host is almost full when less than this share is left of its scarcest class. Found by replays of recorded traces
 * (bench `packing`): there it needs less host time than first fit and best fit, or as little as the better of them.
 */
const almostFullShare = 1 / 4;
/**
 * On hosts with GPUs their fragmentation decides, if it is weighted, and this rule only breaks ties: its 100 points
 * there are less than one step of that score (0.055 points at a difference of two GPUs), and more than the resolution
 * of 1/1024.
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
