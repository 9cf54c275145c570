// What the records say of volumes: whose they are, what they hold of their host, and which of an instance are on no host yet.

import type { Instance, InstanceSpec } from '../../api/resources/instance.ts';
import type { Volume, VolumeSpec } from '../../api/resources/volume.ts';
import { keys } from './keys.ts';
import type { Entry, Snapshot } from './snapshot.ts';

/** Of its host's DISK_GB: every snapshot may come to be as large as the volume itself (qcow2 keeps both states in one file). */
export function heldGiB({ sizeGiB, snapshots }: Pick<VolumeSpec, 'sizeGiB' | 'snapshots'>): number {
  return sizeGiB * (1 + snapshots.length);
}

/** The instance that has the volume; what the volume itself says of it may be of one that is gone, or wants it no more. */
export function holderOf(snapshot: Snapshot, { metadata, status }: Volume): Entry<Instance> | undefined {
  const instance = status.attachedTo && snapshot.instanceById(status.attachedTo.id);
  return instance?.value.spec.volumes?.some(({ name }) => name === metadata.name) ? instance : undefined;
}

/** Those it names that are there, in its order. */
export function volumesOf(
  snapshot: Snapshot,
  { project, volumes = [] }: { readonly project: string; readonly volumes?: InstanceSpec['volumes'] | undefined },
): Entry<Volume>[] {
  return volumes.flatMap(({ name }) => snapshot.get('volume', keys.volume(project, name)) ?? []);
}

/** What an instance with these volumes asks of the host it goes to. */
export interface VolumesAsk {
  /** Where those are that are somewhere: more than one name is nowhere. */
  readonly hosts: readonly string[];
  /** Those that go with it to its host. */
  readonly unplaced: readonly Entry<Volume>[];
}

export function asksOf(volumes: readonly Entry<Volume>[]): VolumesAsk {
  const hosts = new Set<string>();
  const unplaced: Entry<Volume>[] = [];
  for (const volume of volumes) {
    if (volume.value.status.host === undefined) unplaced.push(volume);
    else hosts.add(volume.value.status.host);
  }
  return { hosts: [...hosts].sort(), unplaced };
}
