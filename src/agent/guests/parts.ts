// What every action on a guest is given: the hands of this host, what is wanted, and what this agent has noted of its guests.

import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../base/log.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { VolumeClaims } from '../volumes/volume-claims.ts';
import type { VolumeGate } from '../volumes/volume-gate.ts';
import type { MoveSource } from '../migration/move.ts';
import type { Moves } from '../migration/moves.ts';
import type { VolumeFiles } from '../volumes/files/volume-files.ts';
import type { Runs } from '../runner/runs.ts';
import type { GuestChecks } from './checks/guest-checks.ts';
import type { GuestNotes } from './guest-notes.ts';
import type { Drivers } from './observe.ts';

/** The volumes of this host, as its guests see them. */
export interface VolumesOfHost {
  readonly claims: VolumeClaims;
  /** Whether a guest of this instance may have the volume now. */
  gateOf(volumeId: string, instanceId: string): VolumeGate;
  /** The trouble that an instance has with these volumes has changed. */
  onTrouble(volumeIds: readonly string[]): void;
}

export interface GuestParts extends Drivers {
  readonly leaseHeld: () => boolean;
  readonly ledger: Ledger;
  readonly log: Logger;
  readonly volumes: VolumesOfHost;
  readonly notes: GuestNotes;
  /** The programs of guests. */
  readonly runs: Runs;
  readonly checks: GuestChecks;
  /** Guests that move from or to this host. */
  readonly moves: Moves;
  readonly moveSource: MoveSource;
  readonly volumeFiles: VolumeFiles | undefined;
  readonly clock: Clock;
  /** True once the agent closes: what fails from then on was cut short. */
  readonly closing: () => boolean;
}
