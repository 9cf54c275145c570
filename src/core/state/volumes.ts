// What the records say about volumes: their holder, the amount they hold on their host, and which volumes of an
// instance are on no host yet.

import type { Instance, InstanceSpec } from '../../api/resources/instance.ts';
import type { Volume, VolumeSpec } from '../../api/resources/volume.ts';
import { keys } from './keys.ts';
import type { Entry, Snapshot } from './snapshot.ts';

/**
 * In DISK_GB of its host: each snapshot may grow as large as the volume itself (qcow2 keeps both states in one file).
 */
export function heldGiB({ sizeGiB, snapshots }: Pick<VolumeSpec, 'sizeGiB' | 'snapshots'>): number {
  return sizeGiB * (1 + snapshots.length);
}

/** What it holds on its host. Each move to another host begins a new life, with room of its own. */
export function volumeAllocationKey({ metadata, status }: Volume): string {
  return keys.allocation(metadata.id, lifeOf(status));
}

export function lifeOf({ life = 1 }: Pick<Volume['status'], 'life'>): number {
  return life;
}

/** The instance that has the volume. The volume's own record may name an instance that is gone or no longer uses it. */
export function holderOf(snapshot: Snapshot, { metadata, status }: Volume): Entry<Instance> | undefined {
  const instance = status.attachedTo && snapshot.instanceById(status.attachedTo.id);
  return instance?.value.spec.volumes?.some(({ name }) => name === metadata.name) ? instance : undefined;
}

/** Existing volumes that the instance names, in its order. */
export function volumesOf(
  snapshot: Snapshot,
  { project, volumes = [] }: { readonly project: string; readonly volumes?: InstanceSpec['volumes'] | undefined },
): Entry<Volume>[] {
  return volumes.flatMap(({ name }) => snapshot.get('volume', keys.volume(project, name)) ?? []);
}

/** What an instance with these volumes requires of its host. */
export interface VolumesAsk {
  /** The hosts of its placed volumes: with more than one, no host fits. */
  readonly hosts: readonly string[];
  /** Volumes to create on the instance's host. */
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
