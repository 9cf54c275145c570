// What the actions on volumes and their status share: the hands of this host, what is wanted, and what is known of each volume.

import type { Logger } from '../../base/log.ts';
import type { VolumeClaims } from './volume-claims.ts';
import type { VolumeFiles, VolumeLook } from './files/volume-files.ts';
import { type HolderSources, holdersOf } from './volume-holders.ts';
import type { ObservedVolume } from './volume-plan.ts';

/** Why a volume is not what is wanted. */
export interface Trouble {
  readonly code: string;
  readonly message: string;
}

export interface VolumeParts extends HolderSources {
  /** Absent: this host keeps no volumes. */
  readonly files: VolumeFiles | undefined;
  readonly claims: VolumeClaims;
  readonly log: Logger;
  /** What the last look at the file of each volume found. */
  readonly looks: Map<string, VolumeLook>;
  readonly troubles: Map<string, Trouble>;
  /** The volumes that are being made. */
  readonly making: Map<string, AbortController>;
  /** How many copies are being made of snapshots of a volume. */
  readonly copies: Map<string, number>;
  /** Has the volume looked at again. */
  readonly again: (volumeId: string) => void;
  /** Why a guest could not be given the volumes that it is to have, or does not let go of others; undefined: it could. */
  readonly guestTrouble: (instanceId: string) => string | undefined;
}

/** The volume in the terms of volume-plan.ts. */
export function observeVolume(parts: VolumeParts, volumeId: string, look: VolumeLook): ObservedVolume {
  const { holders, blind } = holdersOf(parts, volumeId);
  const first = holders.find(({ running }) => running) ?? holders[0];
  return {
    look,
    holder: first ?? (blind === undefined ? 'none' : 'unknown'),
    copied: (parts.copies.get(volumeId) ?? 0) > 0,
  };
}
