// What the people of a workload share.

import type { Tally } from '../batch/tally.ts';
import type { Commit } from '../history.ts';
import type { Intents } from '../intents.ts';
import type { Scenario } from '../scenario.ts';
import type { Network } from '../world/network.ts';
import type { Timeline } from '../world/timeline.ts';

export interface WorkloadParts {
  readonly scenario: Scenario;
  readonly timeline: Timeline;
  readonly network: Network;
  readonly intents: Intents;
  readonly commits: readonly Commit[];
  readonly tally: Tally;
  readonly onViolation: (invariant: number, message: string) => void;
  readonly trace: (line: () => string) => void;
  /** Aborted when no new work is to begin. */
  readonly over: AbortSignal;
  /** Instances that tenants and crowds may still create. */
  readonly budget: { left: number };
}
