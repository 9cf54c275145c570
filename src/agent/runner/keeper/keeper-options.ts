// What the parts of a run's keeping share.

import type { RunPiece } from '../../../api/client/client.ts';
import type { RunSpec } from '../../../api/resources/run.ts';
import type { Clock } from '../../../base/clock.ts';
import type { Logger } from '../../../base/log.ts';
import type { Prng } from '../../../base/prng.ts';
import type { OutputLimits } from './run-output.ts';
import type { RunStore } from './run-store.ts';

/** Resolves to what the control plane has then. Throws `ApiError`. */
export type SendPiece = (piece: RunPiece, signal: AbortSignal) => Promise<number>;

export interface KeeperOptions {
  readonly instanceId: string;
  readonly spec: RunSpec;
  readonly store: RunStore;
  readonly limits: OutputLimits;
  readonly send: SendPiece;
  /** The status of the run may have changed. */
  readonly onChange: (instanceId: string) => void;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly log: Logger;
  readonly randomSecret: (length: number) => Buffer;
}
