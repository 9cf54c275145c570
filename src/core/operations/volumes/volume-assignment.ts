// Volume assignment: what a host should do about one volume. As with guests, only an allocation that nothing wants any
// more is the order to delete it.

import type { AssignedVolume, VolumeAssignment } from '../../../api/agent-protocol.ts';
import type { Instance } from '../../../api/resources/instance.ts';
import type { Volume } from '../../../api/resources/volume.ts';
import { conditionOf } from '../../state/conditions.ts';
import { restored } from '../../state/guest-phase.ts';
import type { Allocation } from '../../state/records.ts';
import type { Entry } from '../../state/snapshot.ts';
import { heldGiB, lifeOf } from '../../state/volumes.ts';

export type VolumeByName = (project: string, name: string) => Volume | undefined;

/** `volume`: the record with the allocation's name, which may be another volume. */
export function volumeAssignmentOf(
  allocation: Entry<Allocation>,
  volume: Entry<Volume> | undefined,
  volumeByName: VolumeByName = () => undefined,
): VolumeAssignment {
  const { consumer, amounts } = allocation.value;
  const current = volume?.value.metadata.id === consumer.id ? volume : undefined;
  const spec = current?.value.spec;
  const wanted =
    current !== undefined &&
    current.value.metadata.deletionRequestedAtMs === undefined &&
    // Otherwise it has moved: nothing of it is to stay here.
    lifeOf(current.value.status) === consumer.incarnation;
  const held = Object.values(amounts)[0]?.['DISK_GB'] ?? 1;
  const source = spec?.source && volumeByName(consumer.project, spec.source.volume);
  return {
    volumeId: consumer.id,
    revision: Math.max(allocation.revision, current?.revision ?? 0),
    want: !wanted ? 'absent' : mayBeMore(current.value) ? 'kept' : 'present',
    name: consumer.name,
    project: consumer.project,
    generation: current?.value.metadata.generation ?? 0,
    sizeGiB: spec?.sizeGiB ?? held,
    // Snapshots without room are not made: a claim precedes the request, but a restored record may lack it.
    snapshots: spec === undefined || heldGiB(spec) > held ? [] : spec.snapshots,
    ...(spec?.format === 'filesystem' ? { format: spec.format } : {}),
    ...(spec?.source && source ? { source: { volumeId: source.metadata.id, snapshot: spec.source.snapshot } } : {}),
    made: current?.value.status.made ?? true,
    ...(consumer.incarnation === 1 ? {} : { life: consumer.incarnation }),
  };
}

/** Whether its host may have more of it than the restored record says. */
export function mayBeMore({ status }: Volume): boolean {
  return conditionOf(status.conditions, 'Ready')?.reason === restored;
}

/** The instance's volumes on this host now. */
export function volumesAssigned(instance: Instance, host: string, volumeByName: VolumeByName): AssignedVolume[] {
  return (instance.spec.volumes ?? []).flatMap(({ name, readOnly = false }) => {
    const volume = volumeByName(instance.metadata.project, name);
    if (volume?.status.host !== host || volume.status.attachedTo?.id !== instance.metadata.id) return [];
    return [{ volumeId: volume.metadata.id, name, readOnly }];
  });
}
