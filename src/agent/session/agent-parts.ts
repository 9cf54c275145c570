// What the parts of a session share: the agent's options, its reconcilers, and what it has found out about itself.

import type { Session } from '../../api/agent-protocol.ts';
import type { AgentOptions, Measurement } from './agent-options.ts';
import type { GuestReconciler } from '../guests/guest-reconciler.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { Runs } from '../runner/runs.ts';
import type { Reporter } from './reports.ts';
import type { VolumeReconciler } from '../volumes/volume-reconciler.ts';
import type { Lease } from './lease.ts';
import type { DriverRecovery } from './driver-recovery.ts';

export interface AgentParts {
  readonly options: AgentOptions;
  readonly api: ReturnType<AgentOptions['client']['agent']>;
  readonly agentId: string;
  readonly measurement: Measurement;
  readonly ledger: Ledger;
  readonly guests: GuestReconciler;
  readonly volumes: VolumeReconciler;
  readonly runs: Runs;
  readonly reporter: Reporter;
  readonly recovery: DriverRecovery;
  readonly lease: Lease;
  /** A session begins. */
  readonly onSession: (session: Session) => void;
  /** Aborts when the agent stops. */
  readonly stopping: AbortSignal;
  /** From the first call on, guests and volumes are brought to what the ledger says. */
  readonly beginActing: () => void;
}

export interface SessionState {
  readonly session: Session;
  /** The newest revision that the control plane has shown in this session. */
  revision: number;
  /** Whether the ledger is that of the control plane; before, "unknown guest" means nothing. */
  synced: boolean;
}

export const callTimeoutMs = 30_000;
