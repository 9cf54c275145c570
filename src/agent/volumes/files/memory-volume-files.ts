// Volumes that are only pretended: for the simulator, for tests, and for a host whose guests are. The disk outlives the agent, as
// a real one outlives agents, and loses nothing. No file is ever touched.

import type { VolumeSnapshot } from '../../../api/resources/volume.ts';
import type { Clock } from '../../../base/clock.ts';
import { readerOf } from '../../migration/memory-incoming-files.ts';
import { VolumeError, type VolumeFiles } from './volume-files.ts';

/** A volume as it is. What a guest wrote on it is a text. */
export interface PretendedVolume {
  sizeBytes: number;
  content: string;
  snapshots: readonly (VolumeSnapshot & { readonly content: string })[];
}

/** The volumes of one host, by id. */
export type VolumeDisk = Map<string, PretendedVolume>;

export interface MemoryVolumeFilesOptions {
  readonly disk: VolumeDisk;
  readonly clock: Clock;
  /** Who has it open; its file cannot be changed then. */
  readonly holders?: (volumeId: string) => number;
  /** Throws where a change is to fail. */
  readonly beforeChange?: () => Promise<void>;
}

export function createMemoryVolumeFiles(options: MemoryVolumeFilesOptions): VolumeFiles {
  const { disk, clock, holders = () => 0, beforeChange = async () => {} } = options;
  const changed = async (what: string, volumeId: string): Promise<PretendedVolume> => {
    await beforeChange();
    const volume = disk.get(volumeId);
    if (volume === undefined) throw new VolumeError('Internal', `cannot ${what} volume ${volumeId}: it is not there`);
    if (holders(volumeId) > 0) throw new VolumeError('InUse', `cannot ${what} volume ${volumeId}: a guest has it open`);
    return volume;
  };
  return {
    pathOf: (volumeId) => `/pretended/${volumeId}/disk.qcow2`,
    list: async () => [...disk.keys()].sort(),
    async look(volumeId) {
      const volume = disk.get(volumeId);
      if (volume === undefined) return { found: 'nothing' };
      const snapshots = volume.snapshots
        .map(({ name, createdAtMs }) => ({ name, createdAtMs }))
        .sort((a, b) => (a.name < b.name ? -1 : 1));
      return { found: 'volume', sizeBytes: volume.sizeBytes, usedBytes: volume.content.length, snapshots };
    },
    async make({ volumeId, sizeBytes, source }, signal) {
      if (disk.has(volumeId)) return;
      await beforeChange();
      if (signal.aborted) throw new VolumeError('Aborted', `cannot make volume ${volumeId}: it was given up`);
      const from = source && disk.get(source.volumeId);
      const origin = from?.snapshots.find(({ name }) => name === source?.snapshot);
      if (source !== undefined && origin === undefined) {
        const missing = `there is no snapshot "${source.snapshot}" of volume ${source.volumeId} on this host`;
        throw new VolumeError('SourceMissing', `cannot make volume ${volumeId}: ${missing}`);
      }
      const size = Math.max(sizeBytes, source === undefined ? 0 : (from?.sizeBytes ?? 0));
      disk.set(volumeId, { sizeBytes: size, content: origin?.content ?? '', snapshots: [] });
    },
    async grow(volumeId, sizeBytes) {
      growPretended(await changed('grow', volumeId), sizeBytes);
    },
    async snapshot(volumeId, act, name) {
      const volume = await changed(`${act} snapshot "${name}" of`, volumeId);
      snapshotPretended(volume, { act, name, nowMs: clock.nowMs() });
    },
    async openRead(volumeId) {
      const volume = disk.get(volumeId);
      if (volume === undefined) throw new VolumeError('Internal', `cannot read volume ${volumeId}: it is not there`);
      return readerOf(new TextEncoder().encode(JSON.stringify(volume)));
    },
    check: async () => {},
    makeEmpty: () => beforeChange(),
    async adopt(volumeId, received) {
      await beforeChange();
      if (disk.has(volumeId)) return;
      const volume: PretendedVolume = JSON.parse(new TextDecoder().decode(await received.bytes()));
      disk.set(volumeId, volume);
    },
    async remove(volumeId) {
      if (disk.has(volumeId)) await changed('remove', volumeId);
      disk.delete(volumeId);
    },
  };
}

export function growPretended(volume: PretendedVolume, sizeBytes: number): void {
  volume.sizeBytes = Math.max(volume.sizeBytes, sizeBytes);
}

/** Harmless a second time. */
export function snapshotPretended(
  volume: PretendedVolume,
  { act, name, nowMs }: { readonly act: 'make' | 'remove'; readonly name: string; readonly nowMs: number },
): void {
  const others = volume.snapshots.filter((each) => each.name !== name);
  if (act === 'remove') volume.snapshots = others;
  else if (others.length === volume.snapshots.length)
    volume.snapshots = [...others, { name, createdAtMs: nowMs, content: volume.content }];
}
