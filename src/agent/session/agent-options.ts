// What the host agent is given: who it is, and every part of the machine that it may touch.

import type { Registration, Session } from '../../api/agent-protocol.ts';
import type { Client } from '../../api/client/client.ts';
import type { HostImage } from '../../api/resources/host.ts';
import type { MaintenanceReport } from '../../api/resources/maintenance.ts';
import type { Labels } from '../../api/resources/metadata.ts';
import type { Buggify } from '../../base/buggify.ts';
import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../base/log.ts';
import type { Prng } from '../../base/prng.ts';
import type { Driver } from '../drivers/driver.ts';
import type { LedgerFile } from '../ledger/ledger.ts';
import type { IncomingFiles } from '../migration/moved-files.ts';
import type { DirectMoves } from '../migration/direct/contract.ts';
import type { MoveSource } from '../migration/move.ts';
import type { RunParts } from '../runner/runs.ts';
import type { VolumeFiles } from '../volumes/files/volume-files.ts';

/** What is measured of the machine. */
export type Measurement = Pick<
  Registration,
  | 'machineId'
  | 'bootId'
  | 'address'
  | 'watchdogMs'
  | 'architecture'
  | 'capacity'
  | 'reserved'
  | 'measured'
  | 'diskId'
  | 'traits'
  | 'providers'
>;

export interface Watchdog {
  /** The lease lasts until this time of `bootMs`. */
  renewed(untilMs: number): void;
  /** It asks this from now on: whether a guest that needs the lease may still run. */
  watch(left: () => boolean): void;
}

/** Runs the maintenance command of the configuration. */
export interface Maintenance {
  /** Once for each id, also over restarts of the agent. */
  begin(id: string): void;
  /** Undefined: it was never asked. */
  readonly report: MaintenanceReport | undefined;
}

export interface AgentOptions {
  readonly client: Pick<Client, 'agent'>;
  readonly hostName: string;
  readonly labels?: Labels;
  readonly agentVersion: string;
  /** Who this agent is: `agentIdentity` of its data directory. */
  readonly identity: () => Promise<string>;
  readonly drivers: readonly Driver[];
  readonly ledgerFile: LedgerFile;
  /** The volumes of this host. Absent: it keeps none, and reports so for those that it is to have. */
  readonly volumeFiles?: VolumeFiles;
  /** Where files of guests are kept that move to this host. Absent: it takes none. */
  readonly incomingFiles?: IncomingFiles;
  /** Where these are read from. Default: the control plane, which asks the other host. */
  readonly moveSource?: MoveSource;
  /** Connections to the other host of a move. Absent: the files pass through the control plane. */
  readonly directMoves?: DirectMoves;
  /** What guests with a program to run need. Absent: there are none. */
  readonly runs?: RunParts;
  /** Milliseconds of a clock that goes on while the machine is suspended. Default: `clock.monotonicMs`. */
  readonly bootMs?: () => number;
  /** Resets the machine when guests that need a lease outlive it. Absent: there is none. */
  readonly watchdog?: Watchdog;
  /** Absent: a person looks after this machine. */
  readonly maintenance?: Maintenance;
  readonly measure: () => Promise<Measurement>;
  /** What the image cache holds. Default: nothing. */
  readonly listImages?: () => Promise<readonly HostImage[]>;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly log: Logger;
  /** Where the simulator makes unusual things happen. Default: nowhere. */
  readonly buggify?: Buggify;
  /** Called with every session that begins; `signal` aborts when it is over. Must not throw. */
  readonly onSession?: (session: Session, signal: AbortSignal) => void;
}
