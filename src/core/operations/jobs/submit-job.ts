// A job together with its first attempt, in one Plan: half the commits of a job whose attempt a controller begins.

import { ApiError } from '../../../api/errors.ts';
import type { Context } from '../../state/context.ts';
import type { Snapshot } from '../../state/snapshot.ts';
import type { Decision } from '../decision.ts';
import { beginAttempt } from './begin-attempt.ts';
import { createJob, type JobInput } from './job.ts';

/** As `createJob`. A job that cannot begin now waits, and controllers/jobs/job.ts says what for. */
export function submitJob(snapshot: Snapshot, input: JobInput, ctx: Context): Decision {
  const decision = createJob(snapshot, input, ctx);
  const { plan, key, changed } = decision;
  const job = plan.changes.find((change) => change.key === key)?.value;
  if (!changed || job?.kind !== 'job') return decision;
  try {
    const begun = beginAttempt(snapshot, job, ctx);
    const begins = { ...job, status: begun.status };
    const changes = plan.changes.map((change) => (change.key === key ? { ...change, value: begins } : change));
    return { ...decision, plan: { ...plan, changes: [...changes, ...begun.plan.changes] } };
  } catch (error) {
    if (error instanceof ApiError) return decision;
    throw error;
  }
}
