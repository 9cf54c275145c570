// Before a provisioner is called, the server that leads writes down that it does so. A server that was the leader cannot, and the next one knows
// by it that a call may have been made. The first term stays: whether an earlier write of this same server is known or not, the answer is the same.

import { emptyPlan, type Plan, unchanged } from '../../state/plan.ts';
import type { Snapshot } from '../../state/snapshot.ts';
import type { SpareStep } from './report-spare.ts';

export interface StepClaim {
  readonly plan: Plan;
  /** `resumed`: another server, or this one before it led again, may have begun it; `over`: another step is at hand. */
  readonly is: 'fresh' | 'resumed' | 'over';
}

/** `fence`: holds while this server leads; its revision is the term. */
export function claimStep(
  snapshot: Snapshot,
  { step, fence }: { readonly step: SpareStep; readonly fence: NonNullable<Plan['conditions']>[number] },
): StepClaim {
  const entry = snapshot.get('spare', step.key);
  if (entry?.value.metadata.id !== step.id) return { plan: emptyPlan, is: 'over' };
  const { status } = entry.value;
  if (status.phase !== step.phase || status.attempt !== step.attempt || status.nextAttemptAtMs !== undefined)
    return { plan: unchanged(entry), is: 'over' };
  const claimedTerm = status.claimedTerm ?? fence.ifRevision;
  const value = { ...entry.value, status: { ...status, claimedTerm } };
  return {
    plan: { changes: [{ key: entry.key, ifRevision: entry.revision, value }], conditions: [fence] },
    is: claimedTerm === fence.ifRevision ? 'fresh' : 'resumed',
  };
}
