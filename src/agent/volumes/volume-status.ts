// What is reported of a volume, and whether a guest may have it now. It changes nothing.

import { gibibyte } from '../../base/bytes.ts';
import type { VolumeAssignment, VolumeReport } from '../../api/agent-protocol.ts';
import { volumeMessageLengthMax, volumeSnapshotsMax } from '../../api/resources/volume.ts';
import type { VolumeGate } from './volume-gate.ts';
import { holdersOf } from './volume-holders.ts';
import { observeVolume, type Trouble, type VolumeParts } from './volume-parts.ts';
import { planVolume } from './volume-plan.ts';

const noVolumes = {
  state: 'failed',
  reason: 'NotPossible',
  message: 'this host keeps no volumes',
  sizeGiB: 0,
  snapshots: [],
} satisfies VolumeReport['volume'];

/** Undefined: nothing worth a report yet. */
export function volumeStatus(parts: VolumeParts, volumeId: string): VolumeReport['volume'] | undefined {
  const { ledger, files, looks, troubles } = parts;
  const assignment = ledger.volumeOf(volumeId);
  if (assignment === undefined) return undefined;
  if (files === undefined) return assignment.want === 'present' ? noVolumes : { state: 'absent' };
  const found = looks.get(volumeId);
  const trouble = troubles.get(volumeId);
  if (found === undefined) return trouble && { state: 'failed', ...said(trouble), sizeGiB: 0, snapshots: [] };
  const seen = observeVolume(parts, volumeId, found);
  const { verdict } = planVolume(assignment, seen);
  if (verdict === 'absent') return { state: 'absent' };
  const { state, reason, message } = verdict;
  const holder = typeof seen.holder === 'object' ? seen.holder.instanceId : undefined;
  const inTheWay = trouble ?? (state === 'ready' ? guestTrouble(parts, assignment, holder) : undefined);
  const file = found.found === 'volume' ? found : undefined;
  return {
    state: trouble !== undefined && state === 'preparing' ? 'failed' : state,
    ...(inTheWay !== undefined
      ? said(inTheWay)
      : reason === undefined || message === undefined
        ? {}
        : said({ code: reason, message })),
    sizeGiB: file === undefined ? 0 : Math.floor(file.sizeBytes / gibibyte),
    ...(file === undefined ? {} : { usedBytes: file.usedBytes }),
    snapshots: file === undefined ? [] : file.snapshots.slice(0, volumeSnapshotsMax).map((each) => ({ ...each })),
    ...(holder === undefined ? {} : { instanceId: holder }),
  };
}

export function volumeGate(parts: VolumeParts, volumeId: string, instanceId: string): VolumeGate {
  const { ledger, files, looks } = parts;
  const assignment = ledger.volumeOf(volumeId);
  const path = files?.pathOf(volumeId, assignment?.format);
  const shut = (why: string): VolumeGate => ({ open: false, why, path });
  if (files === undefined) return shut(noVolumes.message);
  if (assignment === undefined) return shut('the control plane has not assigned it to this host yet');
  if (assignment.want === 'absent') return shut('it is being deleted');
  const found = looks.get(volumeId);
  if (found?.found !== 'volume') {
    const seen = found && volumeStatus(parts, volumeId);
    return shut((seen && 'message' in seen ? seen.message : undefined) ?? 'it is being made');
  }
  const { holders, blind } = holdersOf(parts, volumeId);
  const other = holders.find((holder) => holder.instanceId !== instanceId);
  if (other !== undefined) return shut(`guest ${other.instanceId} has it`);
  if (blind !== undefined) return shut(`driver "${blind}" does not see its guests yet, and one of them may have it`);
  return { open: true, path: files.pathOf(volumeId, assignment.format) };
}

/** The trouble of a guest that does not let go of the volume, or does not get it. */
function guestTrouble(
  parts: VolumeParts,
  { volumeId }: VolumeAssignment,
  holder: string | undefined,
): Trouble | undefined {
  const { ledger } = parts;
  const wants = (instanceId: string): boolean => {
    const assignment = ledger.newestOf(instanceId)?.assignment;
    return assignment?.volumes?.some((each) => each.volumeId === volumeId) === true;
  };
  if (holder !== undefined) {
    const message = wants(holder) ? undefined : parts.guestTrouble(holder);
    return message === undefined ? undefined : { code: 'DetachWaits', message };
  }
  for (const instanceId of ledger.instanceIds()) {
    const message = wants(instanceId) ? parts.guestTrouble(instanceId) : undefined;
    if (message !== undefined) return { code: 'AttachWaits', message };
  }
  return undefined;
}

const said = ({ code, message }: Trouble): { readonly reason: string; readonly message: string } => ({
  reason: code,
  message: message.slice(0, volumeMessageLengthMax),
});
