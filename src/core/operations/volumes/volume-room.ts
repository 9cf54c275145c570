// The room of a volume on a known host: claimed when it is created there by name, and extended when it grows.

import { ApiError } from '../../../api/errors.ts';
import { driverFacts } from '../../../api/driver-facts.ts';
import { nearest } from '../../../api/nearest.ts';
import type { Volume } from '../../../api/resources/volume.ts';
import { claimAgain, claimVolumes } from '../../ledger/ledger.ts';
import { assign } from '../../ledger/tree.ts';
import { fleetOf } from '../../scheduler/fleet.ts';
import { describeFits } from '../../scheduler/plugins/fit.ts';
import { keys } from '../../state/keys.ts';
import type { Change } from '../../state/plan.ts';
import type { Allocation } from '../../state/records.ts';
import type { Snapshot } from '../../state/snapshot.ts';
import { heldGiB, volumeAllocationKey } from '../../state/volumes.ts';

const able: ReadonlySet<string> = new Set(driverFacts.flatMap(({ name, volumes }) => (volumes ? [name] : [])));

/** Throws `InvalidRequest` for an unknown host, `Conflict` where the volume cannot be created. */
export function roomForVolume(snapshot: Snapshot, volume: Volume, host: string): Change[] {
  const found = snapshot.get('host', keys.host(host))?.value;
  if (!found) {
    const meant = nearest(
      host,
      Array.from(snapshot.list('host'), ({ value }) => value.metadata.name),
    );
    throw new ApiError('InvalidRequest', `there is no host "${host}"${meant ? `; did you mean "${meant}"?` : ''}`, {
      field: 'spec.host',
    });
  }
  if (!found.status.drivers.some(({ name }) => able.has(name)))
    throw new ApiError('Conflict', `host "${host}" has no driver whose guests can have volumes`, {
      field: 'spec.host',
    });
  return roomForVolumes(snapshot, [volume], host);
}

/** All or none. Throws `Conflict` when there is not enough room. */
export function roomForVolumes(snapshot: Snapshot, volumes: readonly Volume[], host: string): Change[] {
  if (volumes.length === 0) return [];
  const gib = volumes.reduce((sum, { spec }) => sum + heldGiB(spec), 0);
  const names = volumes.map(({ metadata }) => metadata.name).join(', ');
  const [providerId = ''] = Object.keys(fitting(snapshot, { names, host, gib }));
  return claimVolumes(snapshot, volumes, { host, providerId });
}

/** The additional room; none while it is on no host. Less room is released when its host is done. Throws `Conflict`. */
export function growRoomOfVolume(snapshot: Snapshot, volume: Volume): Change[] {
  const { metadata, spec, status } = volume;
  const allocation = snapshot.get('allocation', volumeAllocationKey(volume));
  if (!allocation || status.host === undefined) return [];
  const [[providerId, held] = []] = Object.entries(allocation.value.amounts);
  const more = heldGiB(spec) - (held?.['DISK_GB'] ?? 0);
  if (providerId === undefined || more <= 0) return [];
  const room = fitting(snapshot, { names: metadata.name, host: status.host, gib: more, of: providerId });
  if (room[providerId] === undefined) return [];
  return claimAgain(snapshot, allocation, { [providerId]: { DISK_GB: heldGiB(spec) } });
}

function fitting(
  snapshot: Snapshot,
  {
    names,
    host,
    gib,
    of,
  }: { readonly names: string; readonly host: string; readonly gib: number; readonly of?: string },
): Allocation['amounts'] {
  const fleet = fleetOf(snapshot);
  const slot = fleet.slotOf(host);
  const tree = (slot === undefined ? [] : fleet.tree(slot)).filter(
    ({ provider }) => of === undefined || provider.id === of,
  );
  const verdict = assign(tree, { amounts: { DISK_GB: gib }, portions: [] });
  if (verdict.fits) return verdict.held;
  const why = tree.length === 0 ? 'its agent has not reported its resources' : describeFits(verdict.shortfalls);
  throw new ApiError('Conflict', `host ${host} has no room for ${gib} GiB more of volume ${names}: ${why}`, {
    field: 'spec.sizeGiB',
  });
}
