// The volumes that a guest is to have: which of them it may have now, and the claim on them while the guest is made, started or changed.

import type { Assignment } from '../../api/agent-protocol.ts';
import type { Guest, GuestVolume } from '../drivers/driver.ts';
import type { GuestParts } from './parts.ts';

/** The volumes that the guest may have, or that `guest` has already, whatever became of them; and for which it waits. */
export function volumesFor(
  { volumes }: Pick<GuestParts, 'volumes'>,
  assignment: Assignment,
  guest?: Guest,
): { readonly had: GuestVolume[]; readonly missing: string | undefined } {
  const had: GuestVolume[] = [];
  let missing: string | undefined;
  for (const volume of assignment.volumes ?? []) {
    const gate = volumes.gateOf(volume.volumeId, assignment.instanceId);
    const stays = guest?.volumes?.includes(volume.volumeId) === true;
    if ((gate.open || stays) && gate.path !== undefined) had.push({ ...volume, path: gate.path });
    else if (!gate.open) missing ??= nameOfWait(assignment, volume.volumeId, gate.why);
  }
  return { had, missing };
}

/** Claims all volumes that the guest is to have, until they are released. Undefined: the guest waits for one of them. */
export function takeVolumes(parts: GuestParts, assignment: Assignment): readonly GuestVolume[] | undefined {
  const { had, missing } = volumesFor(parts, assignment);
  const ids = had.map(({ volumeId }) => volumeId);
  const taken = missing === undefined ? parts.volumes.claims.take(ids, assignment.instanceId) : undefined;
  const why = taken === undefined ? missing : nameOfWait(assignment, taken.volumeId, taken.by);
  if (why !== undefined) parts.notes.wait(assignment.instanceId, why);
  return why === undefined ? had : undefined;
}

export function releaseVolumes(parts: GuestParts, { instanceId, volumes }: Assignment): void {
  if (volumes !== undefined) parts.volumes.claims.release(instanceId);
}

export function nameOfWait({ volumes }: Assignment, volumeId: string, why: string): string {
  return `waiting for volume ${volumes?.find((each) => each.volumeId === volumeId)?.name ?? volumeId}: ${why}`;
}
