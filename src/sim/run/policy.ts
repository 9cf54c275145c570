// The policy of the control planes of a run.

import { defaultPolicy, type Policy } from '../../core/state/context.ts';
import type { Scenario } from '../scenario.ts';

/** Small runs have low limits, so that compaction, trimming and aging happen in so short a time. Fleets have the usual limits. */
const lowLimits: Partial<Policy> = {
  eventsMax: 60,
  historyKeptMs: 30_000,
  historyRevisionsMax: 100,
  agingMs: 5_000,
  starvationMs: 25_000,
  nominationMs: 15_000, // each longer than the time of rest after which a run ends
};

export function policyOf(scenario: Scenario, size: 'small' | 'fleet'): Policy {
  return {
    ...defaultPolicy,
    cpuAllocationRatio: 1, // so that small hosts fill up
    heartbeatMs: scenario.heartbeatMs,
    offlineAfterMs: scenario.offlineAfterMs,
    hostDownAfterMs: 2 * scenario.offlineAfterMs,
    restartDelayMs: scenario.restartDelayMs,
    restartDelayMsMax: 2 * scenario.restartDelayMs, // runs are short
    ...(size === 'fleet' ? {} : lowLimits),
    // A run has no time to wait for a person.
    ...(scenario.losesHosts ? { massLossHoldMs: 5_000, massLossIntervalMs: 1_000 } : {}),
    ...scenario.limits,
  };
}
