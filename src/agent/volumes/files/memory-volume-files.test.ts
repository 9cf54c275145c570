import { createManualClock } from '../../../base/manual-clock.ts';
import { volumeFilesConformance } from '../conformance.ts';
import { createMemoryVolumeFiles, type VolumeDisk } from './memory-volume-files.ts';

volumeFilesConformance('pretended volumes', async () => {
  const disk: VolumeDisk = new Map();
  const used = new Set<string>();
  return {
    open: () =>
      createMemoryVolumeFiles({ disk, clock: createManualClock(), holders: (volumeId) => Number(used.has(volumeId)) }),
    async write(volumeId, letter) {
      const volume = disk.get(volumeId);
      if (volume === undefined) throw new Error(`${volumeId} is not there`);
      volume.content = letter;
    },
    read: async (volumeId) => disk.get(volumeId)?.content ?? '',
    async use(volumeId) {
      used.add(volumeId);
      return async () => void used.delete(volumeId);
    },
    dispose: async () => {},
  };
});
